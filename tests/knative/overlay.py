"""An overlay of the base with some components, made for a test."""

from __future__ import annotations

import yaml

from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from tests.knative.manifests import KNATIVE, Manifests, render

VALUES = {
    "floor": "2",
    "coldStart": "540s",
    "ceiling": "6",
    "gpu": "NVIDIA-L4",
    "host": "swap.example",
    "cluster": "north",
    "ingress": "ingress.north.example",
    "weight": "50",
    "healthCheck": "00000000-0000-0000-0000-000000000000",
    "modelsImage": "registry.example/ember-models@sha256:" + 64 * "0",
    "cpu": "2",
    "memory": "2Gi",
    "places": 4,
    "stable": "ember-00007",
}
BUILT = ("ember", "ember-keepalive", "ember-engine-builder")


def built(folder, components):
    """What an overlay with some components renders to, on a cluster that allows what it needs."""
    return allowed(render(kustomization(folder, components)))


def allowed(documents):
    """Objects, on a cluster that allows what they need."""
    maps: dict[str, dict] = {}
    for need in examine(documents, KnativeConfig()).missing:
        maps.setdefault(need.name, {})[need.key] = need.value
    return Manifests(
        documents,
        [{"kind": "ConfigMap", "metadata": {"name": n}, "data": data} for n, data in maps.items()],
    )


def kustomization(folder, components, *, namespace="ember", without=None):
    """Write an overlay of the base with some components.

    Args:
        folder: where to.
        components: their names, in order.
        namespace: of what it renders to.
        without: kinds that are left out, as a pattern.
    """
    local = {"config.kubernetes.io/local-config": "true"}
    values = {"apiVersion": "ember.dev/v1", "kind": "Values"}
    values["metadata"] = {"name": "values", "annotations": local}
    (folder / "values.yaml").write_text(yaml.safe_dump({**values, **VALUES}))
    link = folder / "knative"
    link.symlink_to(KNATIVE)
    images = [{"name": name, "newTag": "cpu"} for name in BUILT]
    settings = {"name": "ember-settings", "behavior": "merge"}
    settings["literals"] = ["EMBER_ALLOW_ANONYMOUS=true"]
    made = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        "resources": ["knative/base", "values.yaml"],
        "components": [f"knative/components/{name}" for name in components],
        "images": images,
        "configMapGenerator": [settings],
    }
    if "models" in components:
        text = "models.toml=[[model]]\nrole = 'detect'\nbuckets = [1]\n"
        made["configMapGenerator"].append({"name": "ember-models", "literals": [text]})
    if without:
        gone = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "$patch": "delete"}
        made["patches"] = [{"target": {"kind": without}, "patch": yaml.safe_dump(gone)}]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(made))
    return folder
