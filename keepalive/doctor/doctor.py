"""The examination: what is wrong with some objects, and what their cluster still has to allow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keepalive.doctor import webhook
from keepalive.doctor.config import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from keepalive.doctor.config import Config

_GROUP = "serving.knative.dev/"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one object.

    Attributes:
        name: of the object, e.g. "Service ember".
        wrong: what is wrong with it, in words.
        needs: the flags of config-features that it needs, on or off.
    """

    name: str
    wrong: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

    Attributes:
        findings: one for each Knative Service.
        missing: the flags that these need and the cluster has not on.
        idle: flags for fields of pods that are on although nothing needs them.
    """

    findings: tuple[Finding, ...]
    missing: tuple[str, ...] = ()
    idle: tuple[str, ...] = field(default=())

    @property
    def well(self) -> bool:
        """Whether the cluster would take everything, and as it is meant."""
        return not self.missing and not any(finding.wrong for finding in self.findings)


def examine(documents: Iterable[Mapping[str, Any]], config: Config) -> Report:
    """Hold Knative Services against what a cluster's webhook takes.

    Args:
        documents: objects; those of other kinds are passed over.
        config: of the cluster.
    """
    findings = tuple(_finding(dict(one), config) for one in documents if _is_service(one))
    needed = sorted({flag for finding in findings for flag in finding.needs})
    on = {flag for flag in config.features if config.allows(flag)}
    return Report(
        findings,
        missing=tuple(flag for flag in needed if flag not in on),
        idle=tuple(sorted(flag for flag in on - set(needed) if "spec-" in flag)),
    )


def patch(flags: Iterable[str]) -> str:
    """The command that turns flags on."""
    data = ",".join(f'"{flag}":"enabled"' for flag in flags)
    return f"kubectl patch configmap {NAMES[0]} -n knative-serving -p '{{\"data\":{{{data}}}}}'"


def _is_service(document: Mapping[str, Any]) -> bool:
    version = str(document.get("apiVersion", ""))
    return document.get("kind") == "Service" and version.startswith(_GROUP)


def _finding(service: dict[str, Any], config: Config) -> Finding:
    told = webhook.complaints(service, config)
    metadata = service.get("metadata")
    name = metadata.get("name", "?") if isinstance(metadata, dict) else "?"
    try:
        needs = tuple(dict.fromkeys(flag for _, flag in webhook.needs(service)))
    except AttributeError:  # its shape is wrong, which `told` says
        needs = ()
    return Finding(f"Service {name}", tuple(told), needs)
