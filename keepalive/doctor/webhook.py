"""What Knative's webhook refuses, or silently takes although it does nothing (Serving 1.21, 1.22).

Each rule takes one Knative Service, as YAML gives it and with mappings and lists where they belong,
and yields what is wrong, in words. `complaints` is all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from keepalive.doctor import fields
from keepalive.doctor.config import ZERO_INITIAL_SCALE, Need
from keepalive.kpa.settings import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepalive.doctor.config import Config

    Thing = dict[str, Any]

_KPA, _HPA = "kpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev"
_COUNT = re.compile(r"\d+")
_DURATION = re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+")
_WHOLE_SECONDS = re.compile(r"(\d+(s|m|h))+")
_PERCENT = re.compile(r"[1-9]\d?(\.\d+)?|100")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

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
    "autoscaling.knative.dev/initial-scale": _COUNT,
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
    "serving.knative.dev/creator": re.compile(".+"),
    "serving.knative.dev/lastModifier": re.compile(".+"),
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
_RESERVED_PATHS = {"/", "/dev", "/dev/log", "/tmp", "/var", "/var/log"}  # noqa: S108
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_LONGEST_DELAY_S = 3600.0


def seconds(text: str) -> float:
    """A duration such as 1m30s; 0 for what is none, which is the business of `annotated`."""
    try:
        return duration(text)
    except ValueError:
        return 0.0


def form(service: Thing, _: Config) -> Iterator[str]:
    """Fields that do not exist, and values of the wrong type."""
    for path in fields.unknown(service):
        yield f"{path} is unknown"
    spec = _revision(service)
    for name in fields.WHOLE_NUMBERS:
        if name in spec and type(spec[name]) is not int:
            yield f"{name}: {spec[name]!r} is no whole number"
    if not spec.get("containers"):
        yield "spec.template.spec.containers is missing"
    for container in _all(spec):
        if not container.get("image"):
            yield f"the container {container.get('name', '')} has no image"
    for where, given in (("the Service", service), ("a revision", _template(service))):
        for kind in ("annotations", "labels"):
            for key, value in _get(given, "metadata", kind).items():
                if not isinstance(value, str):
                    yield f"{kind} of {where}: {key}: {value!r} must be a string; put it in quotes"


def names(service: Thing, _: Config) -> Iterator[str]:
    """Names that cannot be, and traffic that does not add up."""
    name = _get(service, "metadata").get("name", "")
    if not _LABEL.fullmatch(str(name)):
        yield f"the name {name!r} is no DNS label"
    own = _get(service, "spec", "template", "metadata").get("name")
    if own and not str(own).startswith(f"{name}-"):
        yield f"the revision's name {own!r} must begin with {name}-"
    traffic = _get(service, "spec").get("traffic") or []
    if traffic and sum(_number(one, "percent", 0) for one in traffic) != 100:
        yield "the percentages of traffic do not add up to 100"
    for one in traffic:
        if bool(one.get("revisionName")) == bool(one.get("latestRevision")):
            yield "each entry of traffic has either a revisionName or latestRevision: true"


def annotated(service: Thing, _: Config) -> Iterator[str]:
    """Annotations that are misspelt, in the wrong place or have an impossible value."""
    for place, known, given in (
        ("a Service", ON_SERVICE, _get(service, "metadata", "annotations")),
        ("a revision", ON_TEMPLATE, _annotations(service)),
    ):
        for name, value in given.items():
            if "knative.dev/" not in name:
                continue
            if name not in known:
                yield f"{name} means nothing on {place}"
            elif not known[name].fullmatch(str(value)):
                yield f"{name}: {value!r} is not possible"


def scale(service: Thing, config: Config) -> Iterator[str]:
    """Scales that contradict each other or the cluster, and a metric that the class lacks."""
    given = _annotations(service)

    def count(name: str, default: int = 0) -> int:
        text = str(given.get(f"autoscaling.knative.dev/{name}", default))
        return int(text) if text.isdecimal() else default

    least, most = count("min-scale"), count("max-scale")
    if 0 < most < least:
        yield "min-scale is above max-scale"
    if 0 < count("activation-scale") < least:
        yield "activation-scale is below min-scale"
    if config.most_scale and not 0 < most <= config.most_scale:
        yield f"max-scale must be from 1 to {config.most_scale}, the max-scale-limit of the cluster"
    metric = str(given.get("autoscaling.knative.dev/metric") or "")
    if given.get("autoscaling.knative.dev/class", _KPA) == _KPA:
        if (metric or "concurrency") not in {"concurrency", "rps"}:
            yield f"the metric {metric} needs the class {_HPA}"
    elif (metric or "cpu") in {"concurrency", "rps"}:
        yield f"the metric {metric} needs the class {_KPA}"
    if seconds(str(given.get("autoscaling.knative.dev/scale-down-delay", ""))) > _LONGEST_DELAY_S:
        yield "scale-down-delay is at most 1h"
    window = given.get("autoscaling.knative.dev/window")
    if window and not 6 <= seconds(str(window)) <= _LONGEST_DELAY_S:
        yield "window is from 6s to 1h"


def limits(service: Thing, config: Config) -> Iterator[str]:
    """Numbers beyond what the cluster allows."""
    spec = _revision(service)
    whole = _number(spec, "timeoutSeconds", 300)
    if not 0 < whole <= config.most_seconds:
        yield f"timeoutSeconds: {whole} is not from 1 to {config.most_seconds}"
    for part in ("responseStartTimeoutSeconds", "idleTimeoutSeconds"):
        if _number(spec, part, 0) > whole:
            yield f"{part} is above timeoutSeconds"
    if not 0 <= _number(spec, "containerConcurrency", 0) <= config.most_concurrent:
        yield f"containerConcurrency is not from 0 to {config.most_concurrent}"


def refused(service: Thing, _: Config) -> Iterator[str]:
    """Fields and values that no flag allows."""
    spec = _revision(service)
    if "terminationGracePeriodSeconds" in spec:
        yield "terminationGracePeriodSeconds is refused: timeoutSeconds is used for it"
    containers = spec.get("containers") or []
    serving = [one for one in containers if "ports" in one]
    if len(serving) > 1:
        yield "only one container may have ports"
    if len(containers) > 1 and not serving:
        yield "one of several containers must have a port"
    volumes = [one.get("name") for one in spec.get("volumes") or []]
    for container in containers:
        yield from _refused_in(container, volumes)
    for container in spec.get("initContainers") or []:
        yield from _refused_in(container, volumes)
        for field in ("ports", *_PROBES):
            if field in container:
                yield f"{field} is refused on the init container {container.get('name')}"


def _refused_in(container: Thing, volumes: list[str | None]) -> Iterator[str]:
    if "lifecycle" in container:
        yield "lifecycle is refused: the queue-proxy's own hook is there"
    if container.get("name") == "queue-proxy":
        yield "the name queue-proxy is taken"
    if _get(container, "securityContext").get("privileged"):
        yield "privileged is refused"
    ports = container.get("ports") or []
    if len(ports) > 1:
        yield "only one port is allowed"
    for port in ports:
        if port.get("containerPort") in _RESERVED_PORTS:
            yield f"port {port['containerPort']} is the queue-proxy's"
        if port.get("name", "") not in {"", "http1", "h2c"}:
            yield f"a port is named http1 or h2c, not {port['name']}"
    for one in container.get("env") or []:
        if one.get("name") in _RESERVED_VARIABLES:
            yield f"Knative sets {one['name']} itself"
    yield from _refused_mounts(container, volumes)


def _refused_mounts(container: Thing, volumes: list[str | None]) -> Iterator[str]:
    for mount in container.get("volumeMounts") or []:
        at = str(mount.get("mountPath") or "")
        if not at:
            yield f"the mount of {mount.get('name')} has no mountPath"
        elif at.rstrip("/") in {path.rstrip("/") for path in _RESERVED_PATHS}:
            yield f"nothing may be mounted at {at}"
        if mount.get("name") not in volumes:
            yield f"there is no volume {mount.get('name')}"


def flags(service: Thing, config: Config) -> Iterator[str]:
    """What the cluster's configuration does not allow."""
    for what, need in needs(service):
        if not config.has(need):
            yield f"{what} needs {need}"


def needs(service: Thing) -> Iterator[tuple[str, Need]]:
    """What a Service has that a cluster's configuration guards, and what that has to say."""
    if str(_annotations(service).get("autoscaling.knative.dev/initial-scale")) == "0":
        yield "initial-scale: '0'", ZERO_INITIAL_SCALE
    for what, flag in _guarded(_revision(service)):
        yield what, Need(flag)


def _guarded(spec: Thing) -> Iterator[tuple[str, str]]:
    for field in spec:
        if field in FLAG_OF:
            yield field, f"kubernetes.podspec-{FLAG_OF[field]}"
    for volume in spec.get("volumes") or []:
        for kind in volume:
            if kind in _FLAG_OF_VOLUME:
                yield kind, f"kubernetes.podspec-{_FLAG_OF_VOLUME[kind]}"
        claim = _get(volume, "persistentVolumeClaim")
        if claim and not claim.get("readOnly"):
            yield "a writable claim", "kubernetes.podspec-persistent-volume-write"
    for container in _all(spec):
        for one in container.get("env") or []:
            if {"fieldRef", "resourceFieldRef"} & set(_get(one, "valueFrom")):
                yield "fieldRef", "kubernetes.podspec-fieldref"
        if _get(container, "securityContext", "capabilities").get("add"):
            yield "capabilities.add", "kubernetes.containerspec-addcapabilities"
    probed = [
        set(one) & {"readinessProbe", "livenessProbe"} for one in spec.get("containers") or []
    ]
    if sum(map(bool, probed)) > 1:
        yield "probes of several containers", "multi-container-probing"


def _get(thing: Thing, *path: str) -> Thing:
    """What is at a path of mappings, empty where one of them is missing or null."""
    for key in path:
        thing = thing.get(key) or {}
    return thing


def _template(service: Thing) -> Thing:
    return _get(service, "spec", "template")


def _revision(service: Thing) -> Thing:
    return _get(service, "spec", "template", "spec")


def _annotations(service: Thing) -> dict[str, str]:
    return _get(service, "spec", "template", "metadata", "annotations")


def _all(spec: Thing) -> list[Thing]:
    return [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]


def _number(spec: Thing, name: str, default: int) -> int:
    """A whole number; what is none is the business of `form`."""
    value = spec.get(name, default)
    return value if type(value) is int else default


RULES = (form, names, annotated, scale, limits, refused)
"""All but `flags`, which is about the cluster and not about the Service."""


def complaints(service: Thing, config: Config) -> list[str]:
    """All that is wrong with a Service; only its shape, where that is wrong."""
    if wrong := list(fields.misshapen(service)):
        return wrong
    return [told for rule in RULES for told in rule(service, config)]
