"""Whether objects have the form that Kubernetes and Knative publish."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import kubernetes_validate
from cloudcoil.models.knative_serving.serving.v1 import Service
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.knative.manifests import Manifests

KUBERNETES = "1.36.0"
_KNATIVES_OWN = (
    "containerConcurrency",
    "timeoutSeconds",
    "responseStartTimeoutSeconds",
    "idleTimeoutSeconds",
)


def form(manifests: Manifests) -> Iterator[str]:
    """What is not of the form, unknown fields included."""
    for document in manifests.documents:
        if document in manifests.services:
            yield from _knative(document)
        else:
            yield from _kubernetes(document)


def _kubernetes(document: dict[str, Any]) -> Iterator[str]:
    try:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        path = ".".join(map(str, error.path))
        yield f"{document['kind']} {document['metadata'].get('name')}: {path}: {error.message}"


def _knative(service: dict[str, Any]) -> Iterator[str]:
    try:
        # Not strict, "2" would be tried as a number, on which the pattern of quantities fails.
        known = Service.model_validate(service, strict=True)
    except (ValidationError, TypeError) as error:
        yield f"Service: {error}"
        return
    for path in _left_out(
        service, known.model_dump(by_alias=True, exclude_unset=True, mode="json")
    ):
        yield f"Service: {path} is unknown"
    # Knative's schema leaves open what flags guard, such as init containers; a pod's has it.
    spec = {k: v for k, v in service["spec"]["template"]["spec"].items() if k not in _KNATIVES_OWN}
    pod = deepcopy({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec})
    for container in pod["spec"].get("containers", []):
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            container.get(probe, {}).get("httpGet", {}).setdefault("port", 8080)
    yield from _kubernetes(pod)


def _left_out(given: Any, known: Any, path: str = "") -> Iterator[str]:
    """The paths of `given` that are not in `known`."""
    if isinstance(given, dict):
        for key, value in given.items():
            at = f"{path}.{key}".lstrip(".")
            if not isinstance(known, dict) or key not in known:
                yield at
            else:
                yield from _left_out(value, known[key], at)
    elif isinstance(given, list):
        for index, (one, other) in enumerate(zip(given, known, strict=True)):
            yield from _left_out(one, other, f"{path}[{index}]")
