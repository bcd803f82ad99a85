"""The chart of an overlay makes what kustomize makes of it, whatever the values."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from tests import chart
from tests.conftest import STRICT
from tests.knative import helm, promises, webhook
from tests.knative.manifests import KNATIVE, Manifests, render

OVERLAYS = sorted(path.name for path in (KNATIVE / "overlays").iterdir())
HASH = re.compile(r"ember-settings-[a-z0-9]{10}")
OTHERS = {
    "floor": "3",
    "ceiling": "7",
    "coldStart": "300s",
    "gpu": "NVIDIA-H200",
    "cpu": "6",
    "memory": "12Gi",
    "places": 12,
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    if path := helm.program(tmp_path_factory.mktemp("helm")):
        return path
    reason = "helm is not installed, and locks/helm.txt neither"
    if STRICT:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module", params=OVERLAYS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chart") / request.param
    chart.write(request.param, folder)
    return folder


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(program, folder, *words):
    text = run(program, "template", "ember", str(folder), "--namespace=ember", *words)
    return objects([each for each in yaml.safe_load_all(text) if each])


def objects(documents):
    """Each object by what it is; without what kustomize and Helm do differently."""
    found = {}
    for given in documents:
        document = yaml.safe_load(HASH.sub("ember-settings", yaml.safe_dump(given)))
        if document["kind"] == "Namespace":  # which `--create-namespace` makes
            continue
        notes = document["metadata"].get("annotations", {})
        if notes.pop("helm.sh/resource-policy", None) and not notes:
            del document["metadata"]["annotations"]
        found[document["apiVersion"], document["kind"], document["metadata"]["name"]] = document
    return found


def test_it_renders_to_what_kustomize_renders_to(made, program):
    right = objects(render(KNATIVE / "overlays" / made.name))
    assert template(program, made) == right


def test_helm_finds_nothing_wrong_with_it(made, program):
    assert "0 chart(s) failed" in run(program, "lint", str(made))


def test_other_values_do_in_it_what_they_do_in_the_overlay(made, program, tmp_path):
    known = yaml.safe_load((made / "values.yaml").read_text())
    changed = {key: value for key, value in OTHERS.items() if key in known}
    shutil.copytree(KNATIVE, tmp_path / "knative")
    overlay = tmp_path / "knative/overlays" / made.name
    if changed:
        path = overlay / "values.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changed))
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(changed))
    found = template(program, made, f"--values={tmp_path / 'values.yaml'}")
    assert found == objects(render(overlay))
    assert bool(changed) == (found != template(program, made))


def test_a_changed_setting_makes_a_new_revision_and_the_old_one_keeps_its_own(made, program):
    words = ("template", "ember", str(made))
    texts = [run(program, *words, *more) for more in ((), ("--set=settings.EMBER_THREADS=1",))]
    names = [set(HASH.findall(text)) for text in texts]
    assert [len(each) for each in names] == [1, 1]
    assert names[0] != names[1]
    assert all("helm.sh/resource-policy: keep" in text for text in texts)


def test_images_and_namespace_are_values(made, program):
    images = yaml.safe_load((made / "values.yaml").read_text())["images"]
    assert "ember" in images
    words = [f"--set=images.{name}=other.example/{name}:1" for name in images]
    text = run(program, "template", "ember", str(made), "--namespace=elsewhere", *words)
    assert "registry.example" not in text
    documents = [each for each in yaml.safe_load_all(text) if each]
    spaces = {each["metadata"].get("namespace", "elsewhere") for each in documents}
    assert spaces == {"elsewhere"}


def test_what_it_makes_is_promised_and_taken_as_that_of_kustomize(made, program):
    documents = list(template(program, made).values())
    manifests = Manifests(documents, render(KNATIVE / "platform" / made.name))
    assert [told for check in webhook.CHECKS for told in check(manifests)] == []
    assert [*promises.hardened(manifests)] == []
