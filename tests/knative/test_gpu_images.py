"""Each image with each setting of backends, on the GPU overlay as it is rendered and made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from function.cli.publishing import configmap
from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from keepalive.doctor.images import RUNS, own
from tests.knative.manifests import KNATIVE, ROOT, Manifests, kubectl, render, rendered

OVERLAYS = ("gpu-small", "gpu-production", "tidal")
SETTINGS = (None, "cpu", "tensorrt", "cuda", "tensorrt,cuda", "tensorrt,cuda,cpu")
PAIRS = list(product(RUNS, SETTINGS))
MESH = """
- target: {group: serving.knative.dev, kind: Service}
  patch: |-
    apiVersion: serving.knative.dev/v1
    kind: Service
    metadata: {name: any, annotations: {ember.dev/swaps: mesh}}
- target: {kind: Namespace}
  patch: |-
    $patch: delete
    apiVersion: v1
    kind: Namespace
    metadata: {name: any}
"""


MODELS = """
[[model]]
role = "detect"
family = "centerface"
uri = "gs://mine/detect"
size = 1
sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
licence = "MIT"

[[model]]
role = "landmarks"
family = "face_mesh_468"
uri = "gs://mine/landmarks"
size = 1
sha256 = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
licence = "Apache-2.0"

[[model]]
role = "identity"
family = "arcface"
uri = "gs://mine/identity"
size = 1
sha256 = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
licence = "MIT"

[[model]]
role = "swap"
family = "inswapper_128"
uri = "gs://mine/swap"
size = 1
sha256 = "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
licence = "MIT"
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the doctor says is wrong with each pair; all of them are rendered by one process."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "knative").symlink_to(KNATIVE)
    for number, (image, backends) in enumerate(PAIRS):
        settings = ["EMBER_MANIFEST=", "EMBER_PLANS=gs://mine"]
        if backends:
            settings.append(f"EMBER_BACKENDS={backends}")
        made = {
            "namespace": f"n{number}",
            "resources": ["../knative/overlays/gpu-small"],
            "images": [{"name": "registry.example/ember", "newTag": image}],
            "patches": yaml.safe_load(MESH),
            "configMapGenerator": [
                {"name": "ember-settings", "behavior": "merge", "literals": settings}
            ],
        }
        (folder / f"n{number}").mkdir()
        (folder / f"n{number}/kustomization.yaml").write_text(yaml.safe_dump(made))
    every = {"resources": [f"n{number}" for number in range(len(PAIRS))]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(every))
    apart = {}
    for document in render(folder):
        apart.setdefault(document["metadata"]["namespace"], []).append(document)
    found = {}
    for number, pair in enumerate(PAIRS):
        (one,) = examine(apart[f"n{number}"], KnativeConfig()).findings
        found[pair] = one.wrong
    return found


@pytest.mark.parametrize(("image", "backends"), PAIRS, ids=lambda one: str(one).replace(",", "+"))
def test_an_image_goes_with_what_it_can_run_and_with_nothing_else(image, backends, told):
    named = backends.split(",") if backends else own(image)
    wrong = told[image, backends]
    if lacking := [each for each in named if each not in RUNS[image]]:
        assert len(wrong) == 1
        assert wrong[0].startswith(f"EMBER_BACKENDS: {' and '.join(lacking)} ")
    elif set(named) == {"cpu"}:
        assert len(wrong) == 1
        assert "leaves it idle" in wrong[0]
    else:
        assert wrong == ()


@pytest.mark.parametrize("name", OVERLAYS)
def test_no_overlay_says_it_twice(name):
    """The image decides, so that one value says what models run on."""
    overlay = rendered(f"overlays/{name}")
    assert "EMBER_BACKENDS" not in overlay.environment(overlay.main)
    assert ":gpu-ort@sha256:" in overlay.main["image"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_other_models_make_a_new_revision(name):
    """The ConfigMap, which is a resource, gets a hash; whoever names it names that."""
    overlay = rendered(f"overlays/{name}")
    (given,) = [one for one in overlay.of("ConfigMap") if "models.toml" in one["data"]]
    assert given["metadata"]["name"].startswith("ember-models-")
    (volume,) = [one for one in overlay.revision["volumes"] if one["name"] == "models"]
    assert volume["configMap"]["name"] == given["metadata"]["name"]
    assert "annotations" not in given["metadata"]


class TestMake:
    @pytest.fixture
    def make(self, tmp_path):
        """Runs `make render`, or another target, for an overlay of ours."""

        def run(name, target="render", **variables):
            for part in ("Makefile", "image/bases.env"):
                (tmp_path / part).parent.mkdir(exist_ok=True)
                (tmp_path / part).write_text((ROOT / part).read_text())
            if not (tmp_path / "knative").exists():
                (tmp_path / "knative").symlink_to(KNATIVE)
            given = {"KUBECTL": kubectl(), "BIN": Path(sys.executable).parent, **variables}
            words = ["make", "--silent", target, f"OVERLAY={name}"]
            words += [f"{key}={value}" for key, value in given.items()]
            return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

        return run

    @pytest.mark.parametrize("name", OVERLAYS)
    def test_the_sample_is_refused(self, name, make):
        done = make(name)
        assert (done.returncode, done.stdout) == (2, "")
        assert "the models are those of the sample" in done.stderr

    @pytest.mark.parametrize("name", OVERLAYS)
    def test_the_models_of_the_image_are_served_when_that_is_said(self, name, make):
        done = make(name, MODELS="embedded")
        assert done.returncode == 0, done.stderr
        documents = list(yaml.safe_load_all(done.stdout))
        (settings,) = [one for one in documents if "EMBER_STORE" in one.get("data", {})]
        assert settings["data"]["EMBER_MANIFEST"] == ""

    def test_a_config_map_as_the_command_prints_it_takes_the_place_of_the_sample(
        self, make, tmp_path
    ):
        mine = tmp_path / "models.toml"
        mine.write_text(MODELS.lstrip())
        told = CliRunner().invoke(configmap, ["--manifest", str(mine)], obj=mine)
        assert told.exit_code == 0, told.output
        shutil.copytree(KNATIVE, tmp_path / "knative")
        overlay = tmp_path / "knative/overlays/gpu-small"
        (overlay / "models.yaml").write_text(told.stdout)
        done = make("gpu-small")
        assert done.returncode == 0, done.stderr
        made = Manifests(list(yaml.safe_load_all(done.stdout)))
        (given,) = [one for one in made.of("ConfigMap") if "models.toml" in one["data"]]
        assert given["data"]["models.toml"] == mine.read_text()
        assert {"name": "models", "configMap": {"name": given["metadata"]["name"]}} in (
            made.revision["volumes"]
        )
        (overlay / "models.yaml").write_text(told.stdout.replace("/swap", "/another"))
        again = make("gpu-small")
        assert again.returncode == 0
        assert given["metadata"]["name"] not in again.stdout

    def test_with_other_models_the_job_that_builds_plans_is_another(self, make, tmp_path):
        shutil.copytree(KNATIVE, tmp_path / "knative")
        overlay = tmp_path / "knative/overlays/gpu-production"
        path = overlay / "kustomization.yaml"
        kustomization = yaml.safe_load(path.read_text())
        kustomization["components"].append("../../components/engine-build-job")
        builder = {"name": "ember-engine-builder", "newName": "r.example/b", "newTag": "1"}
        kustomization["images"].append(builder)
        path.write_text(yaml.safe_dump(kustomization))
        models = overlay / "models.yaml"
        models.write_text(models.read_text().replace(64 * "0", 64 * "a"))
        names, pods = set(), []
        for variables in ({}, {"MODELS": "embedded"}):
            done = make("gpu-production", **variables)
            assert done.returncode == 0, done.stderr
            (job,) = Manifests(list(yaml.safe_load_all(done.stdout))).of("Job")
            names.add(job["metadata"]["name"])
            pods.append(job["spec"]["template"])
        assert pods[0] != pods[1]
        assert len(names) == 2

    def test_it_is_not_deployed_and_nothing_is_asked_of_the_cluster(self, make, tmp_path):
        spy = tmp_path / "kubectl"
        spy.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\nexec {kubectl()} "$@"\n')
        spy.chmod(0o755)
        given = {"CARRY": "", "PING": "", "KUBECTL": spy}
        done = make("gpu-small", "deploy", MODELS="embedded", IMAGE="r.example/ember:cpu", **given)
        assert (done.returncode, done.stdout) == (2, "")
        assert "the image cpu leaves it idle" in done.stderr
        assert set((tmp_path / "asked").read_text().split()) == {"kustomize"}

    def test_an_image_by_digest_alone_is_warned_of(self, make):
        image = "r.example/ember@sha256:" + 64 * "0"
        done = make("gpu-small", MODELS="embedded", IMAGE=image)
        assert done.returncode == 0
        assert "can run models on a GPU is not seen" in done.stderr

    def test_other_words_for_models_are_refused(self, make):
        done = make("gpu-small", MODELS="mine")
        assert (done.returncode, done.stdout) == (2, "")
        assert "MODELS is mine; it can be embedded" in done.stderr
