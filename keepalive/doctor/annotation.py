"""Annotations of a Knative Service and of its revisions: those that mean something, and how.

The autoscaler's are those of Knative's pkg/apis/autoscaling/annotation_validation.go, the others
those of metadata_validation.go, revision_validation.go and networking's metadata_validation.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from keepalive.cluster.autoscaling import HPA, KPA, PREFIX, alias
from keepalive.doctor.formats import quantity
from keepalive.doctor.shape import INT32
from keepalive.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_OTHERS = {
    f"{group}.knative.dev"
    for group in ("client", "eventing", "flows", "messaging", "operator", "samples", "sources")
}
"""Groups whose annotations mean nothing to Knative Serving, and are not meant for it."""


@dataclass(frozen=True, slots=True)
class AnnotationValue:
    """What an annotation may be.

    Attributes:
        fits: whether a text may be its value.
        write: what to write, in words.
    """

    fits: Callable[[str], bool]
    write: str


def seconds(text: str) -> float | None:
    """A duration such as 1m30s, in seconds; None for what is none."""
    try:
        return duration(text)
    except ValueError:
        return None


def _whole(least: int) -> AnnotationValue:
    def fits(text: str) -> bool:
        return re.fullmatch(r"\+?[0-9]{1,10}", text) is not None and least <= int(text) <= INT32

    return AnnotationValue(fits, f"a whole number from {least}")


def _number(
    least: float, most: float = float("inf"), besides: float | None = None
) -> AnnotationValue:
    def fits(text: str) -> bool:
        known = _NUMBER.fullmatch(text) is not None
        return known and (least <= float(text) <= most or float(text) == besides)

    end = "" if most == float("inf") else f" to {most:g}"
    other = "" if besides is None else f", or {besides:g}"
    return AnnotationValue(fits, f"a number from {least:g}{end}{other}")


def _lasting(least: str, most: str = "", *, whole: bool = True) -> AnnotationValue:
    def fits(text: str) -> bool:
        length = seconds(text)
        if length is None or (whole and length != int(length)):
            return False
        return duration(least) <= length <= (duration(most) if most else float("inf"))

    end = f" to {most}" if most else ""
    return AnnotationValue(
        fits, f"a duration from {least}{end}{', in whole seconds' if whole else ''}"
    )


def _one_of(*values: str) -> AnnotationValue:
    known = {value.lower() for value in values}
    return AnnotationValue(lambda text: text.lower() in known, " or ".join(values))


def _exactly(*values: str) -> AnnotationValue:
    return AnnotationValue(lambda text: text in values, " or ".join(values))


def _class(text: str) -> bool:
    """One of Knative's, or of somebody else's autoscaler, which has a domain of its own."""
    return text in {KPA, HPA} or ("." in text and not text.endswith(".knative.dev"))


_AMOUNT = AnnotationValue(
    lambda text: quantity(text) is not None, "a quantity such as 250m or 1.5Gi"
)
_ANYTHING = AnnotationValue(lambda _: True, "anything")
_AUTOSCALING = {
    "class": AnnotationValue(_class, f"{KPA} or {HPA}"),
    "metric": AnnotationValue(
        lambda text: bool(text.strip()), "concurrency, rps or what the HPA knows"
    ),
    "metric-aggregation-algorithm": _exactly(
        "linear", "weighted-exponential", "weightedExponential"
    ),
    "target": _number(0.01),
    "target-utilization-percentage": _number(1, 100),
    "target-burst-capacity": _number(0, besides=-1),
    "min-scale": _whole(0),
    "max-scale": _whole(0),
    "initial-scale": _whole(0),
    "activation-scale": _whole(2),
    "window": _lasting("6s", "1h"),
    "panic-window-percentage": _number(1, 100),
    "panic-threshold-percentage": _number(110, 1000),
    "scale-down-delay": _lasting("0s", "1h"),
    "scale-to-zero-pod-retention-period": _lasting("0s", "1h", whole=False),
}
_ONE_NAME = {"class", "target", "metric", "window", "activation-scale"}
"""Those that have no alias."""


ON_REVISION: dict[str, AnnotationValue] = {
    **{PREFIX + name: value for name, value in _AUTOSCALING.items()},
    **{
        PREFIX + alias(name): value for name, value in _AUTOSCALING.items() if name not in _ONE_NAME
    },
    "serving.knative.dev/progress-deadline": _lasting("1s"),
    "serving.knative.dev/no-gc": _ANYTHING,
    **{
        f"queue.sidecar.serving.knative.dev/{resource}-resource-{kind}": _AMOUNT
        for resource in ("cpu", "memory", "ephemeral-storage")
        for kind in ("request", "limit")
    },
    "queue.sidecar.serving.knative.dev/resource-percentage": _number(0.1, 100),
    "queue.sidecar.serving.knative.dev/resourcePercentage": _number(0.1, 100),
    "features.knative.dev/podspec-dryrun": _one_of("enabled", "strict"),
    "features.knative.dev/queueproxy-podinfo": _one_of("enabled", "disabled"),
    "features.knative.dev/http-full-duplex": _one_of("enabled", "disabled"),
}
"""Every annotation of a revision that means something to Knative, and what it may be."""

ON_SERVICE: dict[str, AnnotationValue] = {
    "serving.knative.dev/rollout-duration": _lasting("0s"),
    "serving.knative.dev/rolloutDuration": _lasting("0s"),
    "serving.knative.dev/creator": _ANYTHING,
    "serving.knative.dev/lastModifier": _ANYTHING,
    "features.knative.dev/podspec-dryrun": _one_of("enabled", "strict"),
    **dict.fromkeys(
        ("networking.knative.dev/http-protocol", "networking.knative.dev/httpOption"),
        _one_of("enabled", "redirected"),
    ),
    **dict.fromkeys(
        (
            "networking.knative.dev/disable-external-domain-tls",
            "networking.knative.dev/disable-auto-tls",
            "networking.knative.dev/disableAutoTLS",
        ),
        _one_of("true", "false"),
    ),
    **dict.fromkeys(
        (
            "networking.knative.dev/ingress-class",
            "networking.knative.dev/ingress.class",
            "networking.knative.dev/certificate-class",
            "networking.knative.dev/certificate.class",
        ),
        AnnotationValue(
            lambda text: re.fullmatch("[a-z0-9.-]+", text) is not None, "the name of a class"
        ),
    ),
}
"""The same for the Service itself; autoscaling annotations are refused there."""

_LABELS = {"networking.knative.dev/visibility"}


def on_service(given: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the annotations of a Service itself."""
    yield from _wrong(given, ON_SERVICE, "metadata.annotations", "a Service")


def on_revision(given: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the annotations of a revision's template."""
    yield from _wrong(given, ON_REVISION, "spec.template.metadata.annotations", "a revision")


def _wrong(
    given: Mapping[str, str], known: Mapping[str, AnnotationValue], at: str, place: str
) -> Iterator[str]:
    for name, value in given.items():
        group = name.partition("/")[0]
        if not group.endswith("knative.dev") or group in _OTHERS or not isinstance(value, str):
            continue
        if name not in known:
            yield f"{at}: {name} means nothing on {place}{_instead(name, known)}"
        elif not known[name].fits(value):
            yield f"{at}: {name}: {value!r} is not possible; write {known[name].write}"


def _instead(name: str, known: Mapping[str, AnnotationValue]) -> str:
    """What to do about a name that means nothing."""
    if name in _LABELS:
        return "; it is a label"
    if name in ON_REVISION:
        return "; put it under spec.template.metadata.annotations"
    if name in ON_SERVICE:
        return "; put it under metadata.annotations of the Service"
    near = get_close_matches(name, known, 1, 0.7)
    return f"; did you mean {near[0]}?" if near else ""
