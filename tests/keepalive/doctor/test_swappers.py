"""A GPU is not asked for to swap by mesh on the CPU, unless that is meant."""

from __future__ import annotations

import pytest
import yaml

from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from tests.keepalive.doctor.test_doctor import container, service
from tests.keepalive.doctor.test_images import WHOLE, every, ours
from tests.knative.manifests import KNATIVE

SWAP = "[[model]]\nrole = 'swap'\nsha256 = '" + 64 * "a" + "'\n"
DETECT = SWAP.replace("swap", "detect")


def told(*, manifest=None, path="/etc/ember/models/models.toml", gpu=True, annotations=None):
    """What is wrong with a Service, with a manifest beside it."""
    settings = {} if manifest is None else {"MANIFEST": path}
    changes = [ours("r.example/ember:gpu-ort", **settings)]
    if gpu:
        changes.append(container(**WHOLE))
    if manifest is not None:
        mount = {"name": "models", "mountPath": "/etc/ember/models", "readOnly": True}
        changes.append(container(volumeMounts=[mount]))
    made = service(every(*changes))
    if manifest is not None:
        volumes = [{"name": "models", "configMap": {"name": "ember-models"}}]
        made["spec"]["template"]["spec"]["volumes"] = volumes
    made["metadata"]["annotations"] = annotations or {}
    beside = {"kind": "ConfigMap", "metadata": {"name": "ember-models"}}
    beside["data"] = {"models.toml": manifest or ""}
    (found,) = examine([made, beside], KnativeConfig()).findings
    return found.wrong if gpu else tuple(each for each in found.wrong if "GPU" in each)


def test_the_embedded_models_are_refused_with_what_to_do():
    (one,) = told()
    assert one.startswith("the embedded models have none for the role `swap`, so faces are swapped")
    assert "`ember models configmap` prints the ConfigMap ember-models" in one
    assert "ember.dev/swaps: mesh" in one


def test_so_is_a_manifest_without_a_swapper():
    (one,) = told(manifest=DETECT)
    assert one.startswith("the manifest names none for the role `swap`")


@pytest.mark.parametrize("manifest", [None, DETECT])
def test_unless_it_is_said_to_be_meant(manifest):
    assert told(manifest=manifest, annotations={"ember.dev/swaps": "mesh"}) == ()
    assert told(manifest=manifest, annotations={"ember.dev/swaps": "gpu"}) != ()


def test_a_manifest_with_a_swapper_is_fine():
    assert told(manifest=DETECT + SWAP) == ()


def test_the_sample_is_refused_whatever_is_said():
    for name in ("gpu-small", "gpu-production", "tidal"):
        path = KNATIVE / f"overlays/{name}/models.yaml"
        text = yaml.safe_load(path.read_text())["data"]["models.toml"]
        (one,) = told(manifest=text, annotations={"ember.dev/swaps": "mesh"})
        assert one.startswith("the models are those of the sample, which are nowhere: ")


def test_without_a_gpu_nothing_is_said():
    assert told(gpu=False) == ()


def test_a_manifest_that_is_not_among_the_objects_or_none_is_not_looked_at():
    assert told(manifest=SWAP, path="/etc/ember/elsewhere/models.toml") == ()
    assert told(manifest=SWAP, path="/etc/ember/models/other.toml") == ()
    assert told(manifest="no = [toml") == ()
    assert told(manifest="model = 3")[0].startswith("the manifest names none")
    assert told(manifest="model = [3]")[0].startswith("the manifest names none")
