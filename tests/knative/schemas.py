"""Whether objects have the form that Kubernetes and Knative publish."""

from __future__ import annotations

import re
import warnings
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

import kubernetes_validate.utils
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.knative.manifests import Manifests

KUBERNETES = "1.36.0"
# It would read its files anew for every object.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)
UNPUBLISHED = {"DNSEndpoint", "RabbitmqBrokerConfig"}
"""Kinds whose form nobody has published as a package."""
_LEFT_OPEN = {"spec.delivery.timeout", "spec.template.spec.volumes[].image"}
"""Fields that Knative takes and the published schema leaves out: one is on by default, as
delivery-timeout; the other is newer than the schema, and that of a pod has it."""
_KNATIVES_OWN = (
    "containerConcurrency",
    "timeoutSeconds",
    "responseStartTimeoutSeconds",
    "idleTimeoutSeconds",
)


@cache
def _extensions() -> dict[str, dict[str, Any]]:
    """Models of what is not Kubernetes' own; they take seconds to import."""
    from cloudcoil.models.knative_serving.serving.v1beta1 import DomainMapping
    from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule, ServiceMonitor

    with warnings.catch_warnings():  # about names of theirs that shadow each other
        warnings.simplefilter("ignore")
        from cloudcoil.models.knative_eventing.eventing.v1 import Broker, Trigger
        from cloudcoil.models.knative_eventing.sources.v1 import SinkBinding
    return {
        "eventing.knative.dev/v1": {"Broker": Broker, "Trigger": Trigger},
        "serving.knative.dev/v1beta1": {"DomainMapping": DomainMapping},
        "sources.knative.dev/v1": {"SinkBinding": SinkBinding},
        "monitoring.coreos.com/v1": {
            "PodMonitor": PodMonitor,
            "PrometheusRule": PrometheusRule,
            "ServiceMonitor": ServiceMonitor,
        },
    }


def form(manifests: Manifests) -> Iterator[str]:
    """What is not of the form, unknown fields included."""
    for document in manifests.documents:
        extension = _extensions().get(document["apiVersion"], {}).get(document["kind"])
        if document in manifests.services:
            yield from _knative(document)
        elif extension:
            yield from _modelled(document, extension)
        elif document["kind"] not in UNPUBLISHED:
            yield from _kubernetes(document)


def _kubernetes(document: dict[str, Any]) -> Iterator[str]:
    try:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        path = ".".join(map(str, error.path))
        yield f"{document['kind']} {document['metadata'].get('name')}: {path}: {error.message}"


def _modelled(document: dict[str, Any], model: type) -> Iterator[str]:
    kind = document["kind"]
    try:
        # Not strict, "2" would be tried as a number, on which the pattern of quantities fails.
        known = model.model_validate(document, strict=True)
    except (ValidationError, TypeError) as error:
        yield f"{kind}: {error}"
        return
    told = known.model_dump(by_alias=True, exclude_unset=True, mode="json")
    for path in _left_out(document, told):
        if re.sub(r"\[\d+\]", "[]", path) not in _LEFT_OPEN:
            yield f"{kind}: {path} is unknown"


def _knative(service: dict[str, Any]) -> Iterator[str]:
    from cloudcoil.models.knative_serving.serving.v1 import Service

    wrong = list(_modelled(service, Service))
    yield from wrong
    if wrong:
        return
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
