"""A Knative Service to put into a cluster."""

from __future__ import annotations

from tests.kube.knative import SCALING


def service(*, places=4, gpus=0, image="ember:1", traffic=None, annotations=None, **scaling):
    """Its template has autoscaling annotations like `min_scale=1`."""
    given = {f"{SCALING}/{name.replace('_', '-')}": str(v) for name, v in scaling.items()}
    container = {"image": image}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec = {
        "template": {
            "metadata": {"annotations": given},
            "spec": {"containerConcurrency": places, "containers": [container]},
        }
    }
    if traffic:
        spec["traffic"] = traffic
    return {"metadata": {"annotations": annotations or {}}, "spec": spec}
