"""The component `prescaler`: sound, with the rights that a round needs and no others."""

from __future__ import annotations

import copy
import shutil

import pytest
import yaml
from click.testing import CliRunner

from keepalive.cli import commands
from keepalive.prescaler.schedule_file import parse
from tests.knative import names, promises, schemas, webhook
from tests.knative.manifests import KNATIVE, render, rendered
from tests.kube.knative import MIN_SCALE
from tests.kube.objects import REVISIONS
from tests.kube.server import running

OVERLAY = {
    "apiVersion": "kustomize.config.k8s.io/v1beta1",
    "kind": "Kustomization",
    "namespace": "faces",
    "resources": ["../dev"],
    "components": ["../../components/prescaler"],
    "images": [{"name": "ember-keepalive", "newName": "dev.local/ember", "newTag": "keepalive"}],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The dev overlay with a pre-scaler, in another namespace."""
    folder = tmp_path_factory.mktemp("overlay") / "knative"
    shutil.copytree(KNATIVE, folder)
    mine = folder / "overlays" / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(OVERLAY))

    def add(manifests):
        manifests.documents[:] = render(mine)

    return rendered("overlays/dev").changed(add)


def spec(made):
    (job,) = [one for one in made.of("CronJob") if one["metadata"]["name"] == "ember-prescaler"]
    return job["spec"]["jobTemplate"]["spec"]


def container(made):
    (one,) = spec(made)["template"]["spec"]["containers"]
    return one


def schedule(made):
    (one,) = [one for one in made.of("ConfigMap") if "schedule.toml" in one["data"]]
    return one


def rules(made):
    """Those of the Role."""
    return [rule for one in made.of("Role") for rule in one["rules"]]


@pytest.mark.parametrize(
    "check", [schemas.form, *webhook.CHECKS, *promises.CHECKS, *names.CHECKS, names.images]
)
def test_there_is_nothing_to_complain_about(made, check):
    assert list(check(made)) == []


def test_its_pod_has_the_account_with_the_role_and_no_other_pod_has(made):
    (binding,) = made.of("RoleBinding")
    (subject,) = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == ("ember-prescaler", "faces")
    (role,) = made.of("Role")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    having = [name for name, pod in made.pods if pod["serviceAccountName"] == "ember-prescaler"]
    assert having == ["CronJob/ember-prescaler"]
    tokens = [name for name, pod in made.pods if pod.get("automountServiceAccountToken")]
    assert tokens == having


def test_who_administers_the_namespace_can_give_it_all_rights(made):
    """Nothing of it belongs to the whole cluster, where they have none."""
    mine = [one for one in made.documents if "prescaler" in one["metadata"]["name"]]
    assert {one["metadata"].get("namespace") for one in mine} == {"faces"}
    assert not [one for one in made.documents if one["kind"].startswith("Cluster")]


def test_its_schedule_is_mounted_and_fits_the_service(made):
    config, (volume,) = schedule(made), spec(made)["template"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    (mount,) = container(made)["volumeMounts"]
    assert f"--schedule={mount['mountPath']}/schedule.toml" in container(made)["args"]
    read = parse(config["data"]["schedule.toml"])
    base = rendered("base").annotations
    assert read.floor == int(base["autoscaling.knative.dev/min-scale"])
    assert read.max_floor <= int(base["autoscaling.knative.dev/max-scale"])
    assert read.gpu_hours_per_day >= 24 * read.floor


def test_a_round_is_over_before_the_next_one(made):
    (job,) = [one for one in made.of("CronJob") if one["metadata"]["name"] == "ember-prescaler"]
    assert job["spec"]["schedule"] == "* * * * *"
    assert spec(made)["activeDeadlineSeconds"] < 60


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """A round as the pod would do it, in a cluster that has the Service of the overlay."""
    path = tmp_path / "schedule.toml"
    text = schedule(made)["data"]["schedule.toml"]
    always = text.replace("0 8 * * mon-fri", "0 0 * * *").replace("hours = 10", "hours = 24")
    path.write_text(always)
    word, *options = container(made)["args"]
    words = [word, *(f"--schedule={path}" if "--schedule" in one else one for one in options)]

    def rounds(kube, given):
        kube.roles = {"pod": given}
        config = kube.config(tmp_path, "pod", "faces")
        monkeypatch.setenv("KUBECONFIG", str(config))
        return CliRunner().invoke(commands, words)

    with running() as kube:
        service = copy.deepcopy(made.service)
        kube.create("services.serving.knative.dev", "ember", service, "faces")
        yield lambda given: (rounds(kube, given), kube)


def test_with_its_rights_it_raises_the_floor(run, made):
    done, kube = run(rules(made))
    assert done.exit_code == 0, done.stderr
    revision = kube.get(REVISIONS, "ember-00001", "faces")
    assert revision["metadata"]["annotations"][MIN_SCALE] == "2"
    assert len(kube.list("events", "faces")) == 1
    again, _ = run(rules(made))
    assert again.exit_code == 0, again.stderr


def single(rules):
    """Each right by itself."""
    return [
        {**rule, "resources": [resource], "verbs": [verb]}
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def test_it_has_no_right_that_it_does_not_need(run, made):
    rights = single(rules(made))
    assert not any("*" in str(right) for right in rights)
    for missing in rights:
        _, kube = run(rules(made))  # a Lease is there, and the floor is as wanted
        if missing["verbs"] == ["create"]:
            kube.objects.kept = {
                key: one for key, one in kube.objects.kept.items() if key.resource != "leases"
            }
        kube.patch(
            REVISIONS, "ember-00001", {"metadata": {"annotations": {MIN_SCALE: "1"}}}, "faces"
        )
        done, _ = run([right for right in rights if right is not missing])
        assert done.exit_code != 0, missing


def test_it_changes_nothing_of_the_service(made):
    assert made.service["spec"] == rendered("overlays/dev").service["spec"]
