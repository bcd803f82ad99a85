"""The examination: what is wrong with some objects, and what their cluster still has to allow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.doctor import webhook
from keepalive.doctor.config import NAMESPACE
from keepalive.doctor.fields import misshapen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from keepalive.doctor.config import Config, Need

_GROUP = "serving.knative.dev/"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one object.

    Attributes:
        name: of the object, e.g. "Service ember".
        wrong: what is wrong with it, in words.
        needs: what it needs of the cluster's configuration, there or not.
    """

    name: str
    wrong: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

    Attributes:
        findings: one for each Knative Service.
        missing: what these need of the cluster's configuration and it does not say.
        idle: flags for fields of pods that are on although nothing needs them.
    """

    findings: tuple[Finding, ...]
    missing: tuple[Need, ...] = ()
    idle: tuple[str, ...] = ()

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
    needed = {need for finding in findings for need in finding.needs}
    on = {flag for flag in config.features if config.allows(flag)}
    return Report(
        findings,
        missing=tuple(sorted(need for need in needed if not config.has(need))),
        idle=tuple(sorted(flag for flag in on - {n.key for n in needed} if "spec-" in flag)),
    )


def patches(needs: Iterable[Need]) -> list[str]:
    """The commands that make a cluster's configuration say what is needed."""
    data: dict[str, dict[str, str]] = {}
    for need in needs:
        data.setdefault(need.name, {})[need.key] = need.value
    return [
        f"kubectl patch configmap {name} -n {NAMESPACE} -p"
        f" '{json.dumps({'data': keys}, separators=(',', ':'))}'"
        for name, keys in data.items()
    ]


def _is_service(document: Mapping[str, Any]) -> bool:
    version = str(document.get("apiVersion", ""))
    return document.get("kind") == "Service" and version.startswith(_GROUP)


def _finding(service: dict[str, Any], config: Config) -> Finding:
    told = webhook.complaints(service, config)
    metadata = service.get("metadata")
    name = metadata.get("name", "?") if isinstance(metadata, dict) else "?"
    needs = () if any(misshapen(service)) else webhook.needs(service)
    return Finding(f"Service {name}", tuple(told), tuple(dict.fromkeys(need for _, need in needs)))
