"""What Knative's webhook refuses, or silently takes although it does nothing (Serving 1.21, 1.22).

The schemas do not say these things. Each check yields what is wrong, in words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.knative.manifests import Manifests

_KPA, _HPA = "kpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev"
_COUNT = re.compile(r"\d+")
_DURATION = re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+")
_WHOLE_SECONDS = re.compile(r"(\d+(s|m|h))+")
_PERCENT = re.compile(r"[1-9]\d?(\.\d+)?|100")

ON_TEMPLATE = {
    "autoscaling.knative.dev/class": re.compile(f"{_KPA}|{_HPA}".replace(".", r"\.")),
    "autoscaling.knative.dev/metric": re.compile("concurrency|rps|cpu|memory|[a-z][a-z0-9_.-]+"),
    "autoscaling.knative.dev/metric-aggregation-algorithm": re.compile(
        "linear|weightedExponential"
    ),
    "autoscaling.knative.dev/target": re.compile(r"\d+(\.\d+)?"),
    "autoscaling.knative.dev/target-utilization-percentage": _PERCENT,
    "autoscaling.knative.dev/target-burst-capacity": re.compile(r"-1|\d+(\.\d+)?"),
    "autoscaling.knative.dev/min-scale": _COUNT,
    "autoscaling.knative.dev/max-scale": _COUNT,
    "autoscaling.knative.dev/initial-scale": re.compile("[1-9][0-9]*"),
    "autoscaling.knative.dev/activation-scale": re.compile("[2-9]|[1-9][0-9]+"),
    "autoscaling.knative.dev/window": _DURATION,
    "autoscaling.knative.dev/panic-window-percentage": _PERCENT,
    "autoscaling.knative.dev/panic-threshold-percentage": re.compile(r"\d+(\.\d+)?"),
    "autoscaling.knative.dev/scale-down-delay": _DURATION,
    "autoscaling.knative.dev/scale-to-zero-pod-retention-period": _DURATION,
    "serving.knative.dev/progress-deadline": _WHOLE_SECONDS,
    **{
        f"queue.sidecar.serving.knative.dev/{resource}-resource-{kind}": re.compile(r"\d+[a-zA-Z]*")
        for resource in ("cpu", "memory", "ephemeral-storage")
        for kind in ("request", "limit")
    },
    "queue.sidecar.serving.knative.dev/resource-percentage": _PERCENT,
    "features.knative.dev/podspec-dryrun": re.compile("enabled|strict"),
    "features.knative.dev/queueproxy-podinfo": re.compile("enabled|disabled"),
    "features.knative.dev/http-full-duplex": re.compile("enabled|disabled", re.IGNORECASE),
}
"""Every annotation of a revision that means something, and the values that it can have."""

ON_SERVICE = {
    "serving.knative.dev/rollout-duration": _WHOLE_SECONDS,
    "networking.knative.dev/http-protocol": re.compile("enabled|redirected", re.IGNORECASE),
    "networking.knative.dev/disable-external-domain-tls": re.compile("true|false"),
    "networking.knative.dev/ingress-class": re.compile(r"[a-z0-9.-]+"),
    "networking.knative.dev/certificate-class": re.compile(r"[a-z0-9.-]+"),
}
"""The same for the Service itself; autoscaling annotations are refused there."""

FLAG_OF = {
    "initContainers": "init-containers",
    "nodeSelector": "nodeselector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "topologySpreadConstraints": "topologyspreadconstraints",
    "runtimeClassName": "runtimeclassname",
    "securityContext": "securitycontext",
    "priorityClassName": "priorityclassname",
    "schedulerName": "schedulername",
    "hostAliases": "hostaliases",
    "dnsPolicy": "dnspolicy",
    "dnsConfig": "dnsconfig",
    "shareProcessNamespace": "shareprocessnamespace",
    "hostIPC": "hostipc",
    "hostPID": "hostpid",
    "hostNetwork": "hostnetwork",
}
"""Fields of a revision that are refused unless `kubernetes.podspec-…` of config-features is on."""

_FLAG_OF_VOLUME = {
    "persistentVolumeClaim": "persistent-volume-claim",
    "hostPath": "volumes-hostpath",
    "image": "volumes-image",
    "csi": "volumes-csi",
}
_RESERVED_PORTS = {8008, 8012, 8013, 8022, 9090, 9091}
_RESERVED_VARIABLES = {"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"}
_RESERVED_PATHS = {"/", "/dev", "/dev/log", "/tmp", "/var", "/var/log"}
_MOST_SECONDS, _MOST_CONCURRENT = 600, 1000


def annotations(manifests: Manifests) -> Iterator[str]:
    """Annotations that are misspelt, in the wrong place or have an impossible value."""
    for service in manifests.services:
        template = service["spec"]["template"].get("metadata", {}).get("annotations", {})
        for place, known, given in (
            ("a Service", ON_SERVICE, service["metadata"].get("annotations", {})),
            ("a revision", ON_TEMPLATE, template),
        ):
            for name, value in given.items():
                if "knative.dev/" not in name:
                    continue
                if name not in known:
                    yield f"{name} means nothing on {place}"
                elif not known[name].fullmatch(value):
                    yield f"{name}: {value!r} is not possible"


def scale(manifests: Manifests) -> Iterator[str]:
    """Scales that contradict each other, and a metric that the autoscaler's class does not have."""
    for service in manifests.services:
        given = service["spec"]["template"].get("metadata", {}).get("annotations", {})

        def count(name, given=given):
            return int(given.get(f"autoscaling.knative.dev/{name}", 0))

        if 0 < count("max-scale") < count("min-scale"):
            yield "min-scale is above max-scale"
        if 0 < count("activation-scale") < count("min-scale"):
            yield "activation-scale is below min-scale"
        metric = given.get("autoscaling.knative.dev/metric", "concurrency")
        if given.get("autoscaling.knative.dev/class", _KPA) == _KPA:
            if metric not in {"concurrency", "rps"}:
                yield f"the metric {metric} needs the class {_HPA}"
        elif metric in {"concurrency", "rps"}:
            yield f"the metric {metric} needs the class {_KPA}"


def limits(manifests: Manifests) -> Iterator[str]:
    """Numbers beyond what a cluster allows by default."""
    for service in manifests.services:
        spec = service["spec"]["template"]["spec"]
        whole = spec.get("timeoutSeconds", 300)
        if not 0 < whole <= _MOST_SECONDS:
            yield f"timeoutSeconds: {whole} is not from 1 to {_MOST_SECONDS}"
        for part in ("responseStartTimeoutSeconds", "idleTimeoutSeconds"):
            if spec.get(part, 0) > whole:
                yield f"{part} is above timeoutSeconds"
        if not 0 <= spec.get("containerConcurrency", 0) <= _MOST_CONCURRENT:
            yield f"containerConcurrency is not from 0 to {_MOST_CONCURRENT}"


def refused(manifests: Manifests) -> Iterator[str]:
    """Fields and values that no flag allows."""
    for service in manifests.services:
        spec = service["spec"]["template"]["spec"]
        if "terminationGracePeriodSeconds" in spec:
            yield "terminationGracePeriodSeconds is refused: timeoutSeconds is used for it"
        if sum("ports" in container for container in spec["containers"]) > 1:
            yield "only one container may have ports"
        for container in spec["containers"]:
            yield from _refused_in(container)
        for container in spec.get("initContainers", []):
            yield from _refused_in(container)
            for field in ("ports", "readinessProbe", "livenessProbe", "startupProbe"):
                if field in container:
                    yield f"{field} is refused on the init container {container['name']}"


def _refused_in(container: dict[str, Any]) -> Iterator[str]:
    if "lifecycle" in container:
        yield "lifecycle is refused: the queue-proxy's own hook is there"
    if container.get("name") == "queue-proxy":
        yield "the name queue-proxy is taken"
    if container.get("securityContext", {}).get("privileged"):
        yield "privileged is refused"
    ports = container.get("ports", [])
    if len(ports) > 1:
        yield "only one port is allowed"
    for port in ports:
        if port["containerPort"] in _RESERVED_PORTS:
            yield f"port {port['containerPort']} is the queue-proxy's"
        if port.get("name", "") not in {"", "http1", "h2c"}:
            yield f"a port is named http1 or h2c, not {port['name']}"
    for one in container.get("env", []):
        if one["name"] in _RESERVED_VARIABLES:
            yield f"Knative sets {one['name']} itself"
    for mount in container.get("volumeMounts", []):
        if mount["mountPath"].rstrip("/") in {path.rstrip("/") for path in _RESERVED_PATHS}:
            yield f"nothing may be mounted at {mount['mountPath']}"


def flags(manifests: Manifests) -> Iterator[str]:
    """Fields whose flag `knative/platform` does not turn on."""
    for service in manifests.services:
        for field, flag in _guarded(service["spec"]["template"]["spec"]):
            if manifests.flags.get(flag) not in {"enabled", "allowed"}:
                yield f"{field} needs {flag} in knative/platform"


def idle_flags(manifests: Manifests) -> Iterator[str]:
    """Flags that `knative/platform` turns on, for good, though nothing needs them."""
    needed = {
        flag
        for service in manifests.services
        for _, flag in _guarded(service["spec"]["template"]["spec"])
    }
    for flag in manifests.flags:
        if flag not in needed:
            yield f"nothing needs {flag}"


def _guarded(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for field in spec:
        if field in FLAG_OF:
            yield field, f"kubernetes.podspec-{FLAG_OF[field]}"
    for volume in spec.get("volumes", []):
        for kind in volume:
            if kind in _FLAG_OF_VOLUME:
                yield kind, f"kubernetes.podspec-{_FLAG_OF_VOLUME[kind]}"
        claim = volume.get("persistentVolumeClaim", {})
        if claim and not claim.get("readOnly"):
            yield "a writable claim", "kubernetes.podspec-persistent-volume-write"
    for container in spec["containers"] + spec.get("initContainers", []):
        for one in container.get("env", []):
            if {"fieldRef", "resourceFieldRef"} & set(one.get("valueFrom", {})):
                yield "fieldRef", "kubernetes.podspec-fieldref"
        if container.get("securityContext", {}).get("capabilities", {}).get("add"):
            yield "capabilities.add", "kubernetes.containerspec-addcapabilities"
    if sum(bool({"readinessProbe", "livenessProbe"} & set(one)) for one in spec["containers"]) > 1:
        yield "probes of several containers", "multi-container-probing"


CHECKS = (annotations, scale, limits, refused, flags)
