"""`ember doctor --cluster`, with the real kubectl, against the cluster in this process."""

from __future__ import annotations

import pytest
import yaml

from tests.keepalive.doctor.test_advice import traffic
from tests.keepalive.doctor.test_doctor import ember, service
from tests.keepalive.doctor.test_revisions import revision
from tests.knative.manifests import kubectl
from tests.kube.objects import Key

SERVING = "serving.knative.dev"
NAMES = ("config-features", "config-autoscaler", "config-defaults")
PINNED = service(traffic({"revisionName": "swap-00001", "percent": 100}))


def written(name, of="swap"):
    made = revision({"ember.dev/floor-reason": "rush"}, ["ember.dev/floor-reason"])
    made["metadata"] |= {"name": name, "labels": {"serving.knative.dev/service": of}}
    return made


@pytest.fixture
def cluster(kube, tmp_path, monkeypatch):
    """A cluster whose context is the namespace `mine`."""
    monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path, namespace="mine")))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in NAMES:
        kube.create("configmaps", name, {"data": {}}, namespace="knative-serving")
    return kube


def put(cluster, resource, thing, namespace="mine"):
    """An object as it is, whoever has written it."""
    key = Key(SERVING, resource, namespace, thing["metadata"]["name"])
    metadata = {**thing["metadata"], "namespace": namespace}
    cluster.objects.keep(key, {**thing, "metadata": metadata})


def examined(*services):
    text = yaml.safe_dump_all(services)
    return ember("doctor", "-", "--cluster", "--kubectl", kubectl(), text=text)


def test_a_pin_and_a_foreign_annotation_in_the_cluster_are_told(cluster):
    put(cluster, "services", PINNED)
    put(cluster, "revisions", written("swap-00001"))
    done = examined(service())
    assert done.returncode == 65, done.stderr
    assert "Service swap: well" in done.stdout
    assert (
        "Service swap in the cluster: well\n  - warning: The traffic of swap is pinned"
        in done.stdout
    )
    assert "Revision swap-00001: wrong" in done.stdout
    assert "ember.dev/floor-reason, by kubectl-annotate" in done.stdout


def test_services_and_revisions_that_nobody_asked_about_are_left_out(cluster):
    put(cluster, "services", {**PINNED, "metadata": {"name": "other"}})
    put(cluster, "revisions", written("other-00001", "other"))
    done = examined(service())
    assert (done.returncode, done.stdout) == (0, "Service swap: well\n"), done.stderr


def test_each_service_is_looked_for_in_its_own_namespace(cluster):
    put(cluster, "services", PINNED, "photos")
    done = examined(service(lambda made: made["metadata"].update(namespace="photos")))
    assert "Service swap in the cluster: well\n  - warning" in done.stdout, done.stderr


def without_kinds(cluster):
    for resource in ("services", "revisions"):
        del cluster.objects.kinds[SERVING, resource]


def without_config(cluster):
    cluster.objects.delete(Key("", "configmaps", "knative-serving", "config-defaults"))


@pytest.mark.parametrize("lacking", [without_kinds, without_config])
def test_a_cluster_without_knative_is_an_error(cluster, lacking):
    lacking(cluster)
    done = examined(service())
    assert (done.returncode, done.stdout) == (69, "")
