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


_ON = {"multi-container", "kubernetes.podspec-volumes-emptydir"}
"""Flags that a new cluster has on."""
_STRICT = {
    *("multi-container", "multi-container-probing", "kubernetes.containerspec-addcapabilities"),
    *("kubernetes.podspec-init-containers", "kubernetes.podspec-persistent-volume-write"),
    *("kubernetes.podspec-persistent-volume-claim", "kubernetes.podspec-volumes-emptydir"),
    *("kubernetes.podspec-volumes-hostpath", "kubernetes.podspec-volumes-image"),
    *("kubernetes.podspec-volumes-csi", "kubernetes.podspec-volumes-ephemeral"),
    "kubernetes.podspec-volumes-mount-propagation",
}
"""Flags that `allowed` does not turn on (k8s_validation.go asks for `enabled`)."""
ZERO_INITIAL_SCALE = Need("allow-zero-initial-scale", "config-autoscaler", "true")


@dataclass(frozen=True, slots=True)
class KnativeConfig:
    """What Knative's webhook goes by; the defaults are Knative's own.

    Attributes:
        features: flags of config-features that are not as by default.
        seconds: the `timeoutSeconds` of a revision that has none.
        most_seconds: the largest `timeoutSeconds` of a revision.
        most_concurrent: the largest `containerConcurrency`.
        zero_concurrency: whether it may be 0, for any number of requests.
        autoscaler: the class of a revision that has none.
        most_scale: the largest `max-scale`; 0 for any.
        zero_initial_scale: whether a revision may start with no pod.
        scales_to_zero: whether the last pod may go.
    """

    features: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 300
    most_seconds: int = 600
    most_concurrent: int = 1000
    zero_concurrency: bool = True
    autoscaler: str = "kpa.autoscaling.knative.dev"
    most_scale: int = 0
    zero_initial_scale: bool = False
    scales_to_zero: bool = True

    def allows(self, flag: str) -> bool:
        """Whether a flag of config-features is on."""
        value = self.features.get(flag, "").lower()
        if value not in {"enabled", "allowed", "disabled"}:  # Knative, too, then takes the default
            return flag in _ON
        return value == "enabled" or (value == "allowed" and flag not in _STRICT)

    def has(self, need: Need) -> bool:
        """Whether it is as something needs it."""
        return self.zero_initial_scale if need == ZERO_INITIAL_SCALE else self.allows(need.key)


def read(documents: Iterable[Mapping[str, Any]]) -> KnativeConfig:
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
    return KnativeConfig(
        features={key: str(value) for key, value in data["config-features"].items()},
        seconds=_count(defaults, "revision-timeout-seconds", 300),
        most_seconds=_count(defaults, "max-revision-timeout-seconds", 600),
        most_concurrent=_count(defaults, "container-concurrency-max-limit", 1000),
        zero_concurrency=_switch(defaults, "allow-container-concurrency-zero", default=True),
        autoscaler=str(scaler.get("pod-autoscaler-class", "kpa.autoscaling.knative.dev")),
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
