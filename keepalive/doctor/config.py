"""What a cluster's Knative allows: the ConfigMaps of the namespace knative-serving, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMESPACE = "knative-serving"
NAMES = ("config-features", "config-autoscaler", "config-defaults")


@dataclass(frozen=True, order=True, slots=True)
class Need:
    """What a cluster's configuration has to say.

    Attributes:
        key: in the ConfigMap.
        name: of the ConfigMap.
        value: of the key.
    """

    key: str
    name: str = "config-features"
    value: str = "enabled"

    def __str__(self) -> str:
        return f"{self.name}: {self.key}: {self.value}"


ZERO_INITIAL_SCALE = Need("allow-zero-initial-scale", "config-autoscaler", "true")


@dataclass(frozen=True, slots=True)
class Config:
    """What Knative's webhook goes by; the defaults are Knative's own.

    Attributes:
        features: flags of config-features that are not as by default.
        most_seconds: the largest `timeoutSeconds` of a revision.
        most_concurrent: the largest `containerConcurrency`.
        most_scale: the largest `max-scale`; 0 for any.
        zero_initial_scale: whether a revision may start with no pod.
        scales_to_zero: whether the last pod may go.
    """

    features: Mapping[str, str] = field(default_factory=dict)
    most_seconds: int = 600
    most_concurrent: int = 1000
    most_scale: int = 0
    zero_initial_scale: bool = False
    scales_to_zero: bool = True

    def allows(self, flag: str) -> bool:
        """Whether a flag of config-features is on."""
        return self.features.get(flag, "disabled").lower() in {"enabled", "allowed"}

    def has(self, need: Need) -> bool:
        """Whether it is as something needs it."""
        return self.zero_initial_scale if need == ZERO_INITIAL_SCALE else self.allows(need.key)


def read(documents: Iterable[Mapping[str, Any]]) -> Config:
    """The configuration that ConfigMaps make, of those that are among some objects.

    Raises:
        ValueError: a value is none that Knative takes.
    """
    data: dict[str, Mapping[str, str]] = {name: {} for name in NAMES}
    for document in documents:
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if document.get("kind") != "ConfigMap" or name not in NAMES:
            continue
        if not isinstance(given := document.get("data") or {}, dict):
            raise ValueError(f"{name}: data must be a mapping")  # noqa: TRY004
        data[name] = given
    scaler, defaults = data["config-autoscaler"], data["config-defaults"]
    return Config(
        features={key: str(value) for key, value in data["config-features"].items()},
        most_seconds=_count(defaults, "max-revision-timeout-seconds", 600),
        most_concurrent=_count(defaults, "container-concurrency-max-limit", 1000),
        most_scale=_count(scaler, "max-scale-limit", 0),
        zero_initial_scale=_switch(scaler, "allow-zero-initial-scale", default=False),
        scales_to_zero=_switch(scaler, "enable-scale-to-zero", default=True),
    )


def _count(data: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(data.get(key, default))
    except (TypeError, ValueError):
        raise ValueError(f"{key}: {data[key]!r} is no whole number") from None


def _switch(data: Mapping[str, str], key: str, *, default: bool) -> bool:
    return str(data.get(key, default)).lower() == "true"
