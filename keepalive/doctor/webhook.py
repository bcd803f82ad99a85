"""What Knative's webhook refuses, or silently takes although it does nothing (Serving 1.21, 1.22).

Each rule takes one Knative Service, as YAML gives it, and yields what is wrong, in words; all but
`form` need one whose shape is right. `complaints` is all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.cluster.autoscaling import HPA, KPA, setting
from keepalive.doctor import annotation, pod
from keepalive.doctor.config import ZERO_INITIAL_SCALE, Need
from keepalive.doctor.fields import METADATA, SERVICE
from keepalive.doctor.shape import INT32, Complaint, FlagNeed
from keepalive.doctor.view import (
    REVISION,
    Role,
    Thing,
    annotations_of,
    containers,
    get,
    many,
    revision,
    template,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepalive.doctor.config import KnativeConfig


def form(service: Thing, _: KnativeConfig) -> Iterator[str]:
    """Fields that do not exist or are missing, and values that cannot be."""
    for finding in SERVICE(service, ""):
        if isinstance(finding, Complaint):
            yield finding.text


def misshapen(service: Thing) -> bool:
    """Whether values are of another type than the rules expect."""
    return any(
        isinstance(finding, Complaint) and finding.of_type for finding in SERVICE(service, "")
    )


def misplaced(revision: Thing) -> Iterator[str]:
    """What is wrong with the metadata of a Revision."""
    metadata = revision.get("metadata")
    found = METADATA({} if metadata is None else metadata, "metadata")
    yield from (finding.text for finding in found if isinstance(finding, Complaint))


def names(service: Thing, _: KnativeConfig) -> Iterator[str]:
    """Names that do not go together, and traffic that does not add up.

    Source: knative.dev/pkg ValidateObjectMetadata; validateRevisionName, validateTrafficList.
    """
    metadata = get(service, "metadata")
    name = metadata.get("name") or ""
    if not name and not metadata.get("generateName"):
        yield "metadata.name is missing"
    own = get(template(service), "metadata").get("name")
    if own and not name:
        yield f"spec.template.metadata.name: {own!r} cannot be with generateName; leave it out"
    elif own and not str(own).startswith(f"{name}-"):
        yield f"spec.template.metadata.name: {own!r} must begin with {name}-; or leave it out"
    traffic = many(get(service, "spec"), "traffic")
    total = sum(one.get("percent") or 0 for one in traffic)
    if traffic and total != 100:
        yield f"spec.traffic: the percentages are {total} together; they must add up to 100"
    for index, one in enumerate(traffic):
        latest = one.get("latestRevision")
        if latest is not None and bool(one.get("revisionName")) == latest:
            yield f"spec.traffic[{index}] must have either a revisionName or latestRevision: true"


def annotated(service: Thing, _: KnativeConfig) -> Iterator[str]:
    """Annotations that are misspelt, in the wrong place or have an impossible value."""
    yield from annotation.on_service(get(service, "metadata", "annotations"))
    yield from annotation.on_revision(annotations_of(service))


def scale(service: Thing, config: KnativeConfig) -> Iterator[str]:
    """Scales that contradict each other or the cluster, and a metric that the class lacks.

    Source: validateMinMaxScale, validateMetric; for initial-scale the KPA's scaler, which never
    goes beyond max-scale and so never reaches it.
    """
    given = annotations_of(service)

    def count(name: str) -> int:
        text = str(setting(given, name) or "0")
        return min(int(text), INT32) if text.isdecimal() else 0

    least, most = count("min-scale"), count("max-scale")
    start, awake = count("initial-scale"), count("activation-scale")
    if 0 < most < least:
        yield f"min-scale is above max-scale: {least} is more than {most}"
    if 0 < awake < least:
        yield f"activation-scale is below min-scale: {awake} is less than {least}"
    if 0 < most < awake:
        yield f"activation-scale is above max-scale: {awake} is more than {most}"
    if 0 < most < start:
        yield (
            f"initial-scale is above max-scale: a revision waits for {start} replicas before it is"
            f" ready, and gets {most} at most"
        )
    if config.most_scale and setting(given, "max-scale") and not 0 < most <= config.most_scale:
        yield f"max-scale must be from 1 to {config.most_scale}, the max-scale-limit of the cluster"
    metric = given.get("autoscaling.knative.dev/metric")
    kind = given.get("autoscaling.knative.dev/class", config.autoscaler)
    if kind == KPA and (metric or "concurrency") not in {"concurrency", "rps"}:
        yield f"the metric {metric} needs the class {HPA}"
    elif kind == HPA and (metric or "cpu") in {"concurrency", "rps"}:
        yield f"the metric {metric} needs the class {KPA}"


def limits(service: Thing, config: KnativeConfig) -> Iterator[str]:
    """Numbers beyond what the cluster allows (validateTimeoutSeconds, ContainerConcurrency)."""
    spec = revision(service)
    whole = spec.get("timeoutSeconds") or 0
    if not 0 <= whole <= config.most_seconds:
        yield (
            f"{REVISION}.timeoutSeconds: {whole} is not from 1 to {config.most_seconds}, the"
            " max-revision-timeout-seconds of the cluster"
        )
    else:
        for part in ("responseStartTimeoutSeconds", "idleTimeoutSeconds"):
            if (spec.get(part) or 0) > (whole or config.seconds):
                yield (
                    f"{REVISION}.{part} is above timeoutSeconds, {whole or config.seconds}, which"
                    " ends a request first"
                )
    places = spec.get("containerConcurrency")
    least = 0 if config.zero_concurrency else 1
    if places is not None and not least <= places <= config.most_concurrent:
        yield f"containerConcurrency: {places} is not from {least} to {config.most_concurrent}"


def refused(service: Thing, _: KnativeConfig) -> Iterator[str]:
    """What containers and volumes must be to each other, and are not."""
    for rule in pod.RULES:
        yield from rule(service)


def flags(service: Thing, config: KnativeConfig) -> Iterator[str]:
    """What the cluster's configuration does not allow."""
    for what, need in needs(service):
        if not config.has(need):
            yield f"{what} needs {need}"


def needs(service: Thing) -> Iterator[tuple[str, Need]]:
    """What a Service has that a cluster's configuration guards, and what that has to say."""
    if setting(annotations_of(service), "initial-scale") == "0":
        yield "initial-scale: '0'", ZERO_INITIAL_SCALE
    for finding in SERVICE(service, ""):
        if isinstance(finding, FlagNeed):
            yield finding.at, Need(finding.flag)
    spec = revision(service)
    for index, volume in enumerate(many(spec, "volumes")):
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("readOnly"):
            what = f"{REVISION}.volumes[{index}].persistentVolumeClaim without readOnly: true"
            yield what, Need("kubernetes.podspec-persistent-volume-write")
    for one in containers(spec):
        for probe in pod.PROBES:
            if one.role is Role.SIDECAR and get(one.given, probe):
                yield f"{one.at}.{probe} of a second container", Need("multi-container-probing")
    if len(many(spec, "containers")) > 1:
        yield f"{REVISION}.containers: more than one", Need("multi-container")


RULES = (form, names, annotated, scale, limits, refused)
"""All but `flags`, which is about the cluster and not about the Service."""


def complaints(service: Thing, config: KnativeConfig) -> list[str]:
    """All that is wrong with a Service; only its shape, where that is wrong."""
    rules = (form,) if misshapen(service) else RULES
    return [finding for rule in rules for finding in rule(service, config)]
