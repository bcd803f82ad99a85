"""Every kustomization renders to what Kubernetes and Knative accept, and to what we promise."""

from __future__ import annotations

import re
import shutil

import pytest
import yaml

from keepalive.doctor.config import KnativeConfig, Need
from keepalive.doctor.doctor import examine
from tests.knative import names, promises, schemas, security, webhook
from tests.knative.manifests import KNATIVE, ROOT, Manifests, render, rendered

OVERLAYS = sorted(path.parent.name for path in KNATIVE.glob("overlays/*/kustomization.yaml"))
WIDE = "PriorityClass"
"""The one kind of the platform that is no setting of Knative."""
FOLDERS = ["base", *(f"overlays/{name}" for name in OVERLAYS)]
CHECKS = [schemas.form, *webhook.CHECKS, *promises.CHECKS, *security.CHECKS, *names.CHECKS]
CASES = [
    pytest.param(folder, check, id=f"{folder}-{check.__name__}")
    for folder in FOLDERS
    for check in CHECKS
    if (folder, check) != ("base", promises.callers)  # who may call is for overlays to say
]


@pytest.mark.parametrize(("folder", "check"), CASES)
def test_there_is_nothing_to_complain_about(folder, check):
    assert list(check(rendered(folder))) == []


@pytest.mark.parametrize("name", [name for name in OVERLAYS if name != "dev"])
def test_in_production_nothing_is_reached_but_what_a_policy_names(name):
    assert list(security.closed(rendered(f"overlays/{name}"))) == []


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_names_images_that_are_built_here(name):
    assert list(names.images(rendered(f"overlays/{name}"))) == []


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_platform_says_exactly_what_the_doctor_finds_missing_on_a_new_cluster(name):
    overlay = rendered(f"overlays/{name}")
    said = {
        Need(key, one["metadata"]["name"], value)
        for one in overlay.platform
        if one["kind"] == "ConfigMap"
        for key, value in one["data"].items()
    }
    spaces = {one["metadata"]["namespace"] for one in overlay.platform if one["kind"] != WIDE}
    assert spaces == {"knative-serving"}
    assert set(examine(overlay.documents, KnativeConfig()).missing) == said
    assert list(webhook.idle_flags(overlay)) == []


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_needs_no_rights_beyond_its_namespace(name):
    """But for the namespace itself, all that belongs to the cluster is the platform's."""
    overlay = rendered(f"overlays/{name}")
    assert [one["kind"] for one in overlay.documents if "namespace" not in one["metadata"]] == [
        "Namespace"
    ]
    used = {pod["priorityClassName"] for _, pod in overlay.pods if "priorityClassName" in pod}
    made = {one["metadata"]["name"] for one in overlay.platform if one["kind"] == WIDE}
    assert used <= made


def test_a_changed_setting_makes_a_new_revision():
    base, dev = rendered("base"), rendered("overlays/dev")  # they differ in settings
    used = {one.main["envFrom"][0]["configMapRef"]["name"] for one in (base, dev)}
    assert len(used) == 2


def test_nothing_but_yaml_is_there():
    files = [path for path in KNATIVE.rglob("*") if path.is_file()]
    assert files
    assert {path.suffix for path in files} == {".yaml"}


def test_every_value_is_explained():
    text = (ROOT / "docs" / "deploy.md").read_text()
    base = rendered("base")
    settings = [f"{name}={value}" for name, value in base.environment(base.main).items()]
    scales = [f"{name.partition('/')[2]}: {value}" for name, value in base.annotations.items()]
    numbers = [
        f"{name}: {value}" for name, value in base.revision.items() if isinstance(value, int)
    ]
    assert [value for value in settings + scales + numbers if f"`{value}`" not in text] == []


def test_the_overlay_that_the_docs_show_is_sound(tmp_path):
    text = (ROOT / "docs" / "deploy.md").read_text()
    (shown,) = re.findall(r"```yaml\n# knative/(\S+)\n(.+?)```", text, re.DOTALL)
    shutil.copytree(KNATIVE, tmp_path, dirs_exist_ok=True)
    path = tmp_path / shown[0]
    path.parent.mkdir()
    path.write_text(shown[1].replace("…", "0" * 64))
    mine = Manifests(render(path.parent), rendered("base").platform)
    assert [complaint for check in CHECKS for complaint in check(mine)] == []
    assert mine.annotations["autoscaling.knative.dev/min-scale"] == "2"
    assert mine.environment(mine.main)["EMBER_LOG_LEVEL"] == "warning"
    assert mine.main["image"] == f"registry.example/ember@sha256:{'0' * 64}"


@pytest.mark.parametrize("name", [name for name in OVERLAYS if name != "dev"])
def test_one_value_of_the_worst_cold_start_decides_how_long_requests_are_held(name):
    values = yaml.safe_load((KNATIVE / "overlays" / name / "values.yaml").read_text())
    overlay = rendered(f"overlays/{name}")
    held = {overlay.revision[f"{limit}TimeoutSeconds"] for limit in ("responseStart", "idle")}
    held.add(promises.worst_cold_start_s(overlay))
    assert held == {int(values["coldStart"].removesuffix("s"))}


def test_pings_end_before_their_job_is_ended():
    (job,) = rendered("overlays/dev").of("CronJob")
    spec = job["spec"]["jobTemplate"]["spec"]
    words = spec["template"]["spec"]["containers"][0]["args"]
    given = dict(word.split("=") for word in words if "=" in word)
    longest = float(given["--jitter"]) + float(given["--wait"]) + 2 * float(given["--timeout"])
    assert longest < spec["activeDeadlineSeconds"]
    settings = promises.replica_settings(rendered("overlays/dev"))
    assert float(given["--timeout"]) > settings.requests.request_timeout_s, (
        "it gives up before we answer"
    )
