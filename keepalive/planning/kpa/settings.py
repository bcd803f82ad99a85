"""The settings of Knative's autoscaler: names, defaults, allowed values, what follows from them.

A name is that of the annotation, without `autoscaling.knative.dev/`, or that of the ConfigMap
`config-autoscaler`; both are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from keepalive.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PREFIXES = ("autoscaling.knative.dev/", "serving.knative.dev/")
_HOUR = 3600.0


class InvalidSetting(ValueError):
    """A setting is unknown or cannot be so; its text says which and what is allowed."""


class ScalingMetric(StrEnum):
    """What is counted."""

    CONCURRENCY = "concurrency"
    RPS = "rps"


class Averaging(StrEnum):
    """How the seconds of a window are averaged."""

    LINEAR = "linear"
    EXPONENTIAL = "weighted-exponential"


class ScalingTarget(NamedTuple):
    """What one replica can take: at most, and as the autoscaler aims."""

    total: float
    target: float


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """All that the decisions depend on; the defaults are Knative's.

    Attributes:
        container_concurrency: requests that a replica works on at once; 0 for any number.
        metric: what is counted.
        target: how much of it a replica may have; None for the default of the metric.
        utilisation: which part of that is aimed for; None for `default_utilisation`.
        default_utilisation: the part that is aimed for where `utilisation` is None; with the metric
            rps it is always 0.7.
        default_concurrency: the target for concurrency without any other.
        default_rps: the target for requests per second without any other.
        averaging: how the seconds of a window are averaged.
        stable_window_s: the stable window.
        panic_window_ratio: the panic window as part of the stable one.
        panic_threshold: how many times the ready replicas must be wanted to panic.
        max_scale_up_rate: how many times the ready replicas may be wanted at once.
        max_scale_down_rate: which part, as divisor, of the ready replicas stays at least.
        min_scale: the fewest replicas.
        max_scale: the most replicas; 0 for any number.
        initial_scale: the replicas that a new revision starts with.
        allow_zero_initial_scale: whether that may be none.
        activation_scale: the fewest replicas while there is any load.
        scale_down_delay_s: how long a decision for fewer replicas is held back.
        target_burst_capacity: requests that must fit in at once, else the activator stays in the
            path; -1 for always.
        scale_to_zero_grace_s: how long the activator must be in the path before the last replica
            goes.
        pod_retention_s: how long the last replica stays after it could go.
        scale_to_zero: whether it may go.
        progress_deadline_s: how long a revision may take to become ready.
    """

    container_concurrency: int = 0
    metric: ScalingMetric = ScalingMetric.CONCURRENCY
    target: float | None = None
    utilisation: float | None = None
    default_utilisation: float = 0.7
    default_concurrency: float = 100.0
    default_rps: float = 200.0
    averaging: Averaging = Averaging.LINEAR
    stable_window_s: int = 60
    panic_window_ratio: float = 0.1
    panic_threshold: float = 2.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    min_scale: int = 0
    max_scale: int = 0
    initial_scale: int = 1
    allow_zero_initial_scale: bool = False
    activation_scale: int = 0
    scale_down_delay_s: int = 0
    target_burst_capacity: float = 211.0
    scale_to_zero_grace_s: float = 30.0
    pod_retention_s: float = 0.0
    scale_to_zero: bool = True
    progress_deadline_s: float = 600.0

    @property
    def panic_window_s(self) -> int:
        """The panic window, in whole seconds, at least one."""
        return max(1, int(self.stable_window_s * self.panic_window_ratio + 0.5))

    @property
    def goal(self) -> ScalingTarget:
        """What a replica can take, and what is aimed for."""
        rps = self.metric is ScalingMetric.RPS
        if rps:
            total = self.target or self.default_rps
        else:
            total = self.target or self.container_concurrency or self.default_concurrency
            if self.container_concurrency:
                total = min(total, self.container_concurrency)
        utilisation = self.utilisation or (0.7 if rps else self.default_utilisation)
        return ScalingTarget(float(total), max(0.01, total * utilisation))


def read(pairs: Iterable[tuple[str, str]], container_concurrency: int = 0) -> AutoscalerSettings:
    """Settings from names and values as Knative has them; later ones win.

    Args:
        pairs: names and values.
        container_concurrency: that of the revision; 0 for any number.

    Raises:
        InvalidSetting: a name is unknown, a value not allowed, or two do not fit together.
    """
    if not 0 <= container_concurrency <= 1000:
        raise InvalidSetting(
            f"The container concurrency {container_concurrency} is not from 0 to 1000."
        )
    found: dict[str, Any] = {"container_concurrency": container_concurrency}
    for name, text in pairs:
        key = name
        for prefix in _PREFIXES:
            key = key.removeprefix(prefix)
        if key not in _KEYS:
            raise InvalidSetting(
                f"There is no setting {name!r}; there are: {', '.join(sorted(_KEYS))}."
            )
        field, reader = _KEYS[key]
        try:
            found[field] = reader(text.strip())
        except ValueError as error:
            raise InvalidSetting(f"{key}={text} {error}.") from None
    settings = replace(AutoscalerSettings(), **found)
    if settings.max_scale and settings.min_scale > settings.max_scale:
        raise InvalidSetting(
            f"min-scale={settings.min_scale} is above max-scale={settings.max_scale}."
        )
    if settings.initial_scale == 0 and not settings.allow_zero_initial_scale:
        raise InvalidSetting("initial-scale=0 needs allow-zero-initial-scale=true.")
    return settings


def _whole(low: int) -> Callable[[str], int]:
    def reader(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise ValueError(f"is no whole number from {low}")
        return int(text)

    return reader


def _number(low: float, high: float, *, per: float = 1.0, above: bool = False) -> Any:
    """Numbers from `low`, or only above it, to `high`, divided by `per`."""

    def reader(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("is no number") from None
        if not low <= value <= high or (above and value == low):
            most = "" if high == float("inf") else f" to {high:g}"
            raise ValueError(f"is not {'above' if above else 'from'} {low:g}{most}")
        return value / per

    return reader


def _seconds(low: float, high: float = _HOUR, *, whole: bool = False) -> Callable[[str], float]:
    def reader(text: str) -> float:
        value = duration(text)
        if not low <= value <= high:
            raise ValueError(f"is not from {low:g}s to {high:g}s")
        if whole and value != int(value):
            raise ValueError("is not in whole seconds")
        return int(value) if whole else value

    return reader


def _truth(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("is neither true nor false")
    return text == "true"


def _burst(text: str) -> float:
    if text == "-1":
        return -1.0
    try:
        return float(_number(0, float("inf"))(text))
    except ValueError as error:
        raise ValueError(f"{error}, nor -1") from None


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def reader(text: str) -> StrEnum:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"is none of {', '.join(kind)}") from None

    return reader


def _metric(text: str) -> StrEnum:
    if text in {"cpu", "memory"}:
        raise ValueError("is scaled by a HorizontalPodAutoscaler, not by this autoscaler")
    return _one_of(ScalingMetric)(text)


_ANY = float("inf")
_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "activation-scale": ("activation_scale", _whole(2)),
    "allow-zero-initial-scale": ("allow_zero_initial_scale", _truth),
    "container-concurrency-target-default": ("default_concurrency", _number(0.01, _ANY)),
    "container-concurrency-target-percentage": (
        "default_utilisation",
        _number(0, 100, per=100, above=True),
    ),
    "enable-scale-to-zero": ("scale_to_zero", _truth),
    "initial-scale": ("initial_scale", _whole(0)),
    "max-scale": ("max_scale", _whole(0)),
    "max-scale-down-rate": ("max_scale_down_rate", _number(1, _ANY, above=True)),
    "max-scale-up-rate": ("max_scale_up_rate", _number(1, _ANY, above=True)),
    "metric": ("metric", _metric),
    "metric-aggregation-algorithm": ("averaging", _one_of(Averaging)),
    "min-scale": ("min_scale", _whole(0)),
    "panic-threshold-percentage": ("panic_threshold", _number(110, 1000, per=100)),
    "panic-window-percentage": ("panic_window_ratio", _number(1, 100, per=100)),
    "progress-deadline": ("progress_deadline_s", _seconds(1, _ANY, whole=True)),
    "requests-per-second-target-default": ("default_rps", _number(1, _ANY)),
    "scale-down-delay": ("scale_down_delay_s", _seconds(0, whole=True)),
    "scale-to-zero-grace-period": ("scale_to_zero_grace_s", _seconds(6, _ANY)),
    "scale-to-zero-pod-retention-period": ("pod_retention_s", _seconds(0)),
    "stable-window": ("stable_window_s", _seconds(6, whole=True)),
    "target": ("target", _number(0.01, _ANY)),
    "target-burst-capacity": ("target_burst_capacity", _burst),
    "target-utilization-percentage": ("utilisation", _number(1, 100, per=100)),
    "window": ("stable_window_s", _seconds(6, whole=True)),
}
