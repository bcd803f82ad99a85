"""The examination: what is wrong with some objects, and what their cluster still has to allow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.doctor import advice, applied, builders, images, revisions, swappers, webhook
from keepalive.doctor.config import NAMESPACE
from keepalive.doctor.view import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from keepalive.doctor.config import KnativeConfig, Need
    from keepalive.doctor.view import Thing

_GROUP = "serving.knative.dev/"


@dataclass(frozen=True, slots=True)
class ObjectFinding:
    """What was found about one object.

    Attributes:
        name: of the object, e.g. "Service ember".
        wrong: what is wrong with it, in words.
        needs: what it needs of the cluster's configuration, there or not.
        warned: what is taken as it is, and perhaps not meant, in words.
    """

    name: str
    wrong: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    warned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

    Attributes:
        findings: one for each Knative Service and Revision, and for others with something wrong.
        missing: what these need of the cluster's configuration and it does not say.
        idle: flags for fields of pods that are on although nothing needs them.
    """

    findings: tuple[ObjectFinding, ...]
    missing: tuple[Need, ...] = ()
    idle: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        """Whether the cluster would take everything, and as it is meant; warnings do not count."""
        return not self.missing and not any(finding.wrong for finding in self.findings)


def examine(
    documents: Iterable[Mapping[str, Any]],
    config: KnativeConfig,
    live: Iterable[Mapping[str, Any]] = (),
) -> Report:
    """Hold Knative Services against what a cluster's webhook takes.

    Args:
        documents: objects; besides Services and Revisions some that go with them are looked at.
        config: of the cluster.
        live: Services and Revisions that are in the cluster.
    """
    given, there = [dict(one) for one in documents], [dict(one) for one in live]
    services = [one for one in given if _is(one, "Service")]
    sound = [one for one in services if not webhook.misshapen(one)]
    findings = [
        *(_service(one, config, given) for one in services),
        *(_revision(one, given) for one in given if _is(one, "Revision")),
        *(ObjectFinding(*told) for told in builders.examined(given, sound)),
        *(ObjectFinding(*told) for told in applied.examined(given)),
        *_cluster(there, services),
    ]
    needed = {need for finding in findings for need in finding.needs}
    on = {flag for flag in config.features if config.allows(flag)}
    return Report(
        tuple(findings),
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


def named(service: Mapping[str, Any]) -> tuple[str | None, str]:
    """The namespace of an object, None where it has none, and its name."""
    metadata = service.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    space = known.get("namespace")
    return (str(space) if space else None), str(known.get("name") or "?")


def knative(documents: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The Knative Services among some objects."""
    return [one for one in documents if _is(one, "Service")]


def _is(document: Mapping[str, Any], kind: str) -> bool:
    version = str(document.get("apiVersion", ""))
    return document.get("kind") == kind and version.startswith(_GROUP)


def _service(service: Thing, config: KnativeConfig, documents: list[Thing]) -> ObjectFinding:
    wrong = list(webhook.complaints(service, config))
    name = f"Service {named(service)[1]}"
    if webhook.misshapen(service):
        return ObjectFinding(name, tuple(wrong))
    settings = advice.settings_of(service, documents)
    wrong += images.complaints(service, settings)
    wrong += swappers.complaints(service, settings, documents)
    return ObjectFinding(
        name,
        tuple(wrong),
        tuple(dict.fromkeys(need for _, need in webhook.needs(service))),
        tuple(problems for rule in advice.RULES for problems in rule(service, config, settings)),
    )


def _revision(revision: Thing, documents: list[Thing]) -> ObjectFinding:
    services = {
        named(one)[1]: one
        for one in documents
        if _is(one, "Service") and not webhook.misshapen(one)
    }
    name = f"Revision {named(revision)[1]}"
    if problems := list(webhook.misplaced(revision)):
        return ObjectFinding(name, tuple(problems))
    return ObjectFinding(
        name,
        tuple(revisions.written(revision)),
        warned=tuple(revisions.perhaps_written(revision, services)),
    )


def _cluster(live: list[Thing], services: list[Thing]) -> Iterable[ObjectFinding]:
    """What is worth telling about the Services in the cluster that are to be changed."""
    names = {named(one)[1] for one in services}
    for one in live:
        if _is(one, "Service") and named(one)[1] in names and (problems := advice.pin(one)):
            yield ObjectFinding(f"Service {named(one)[1]} in the cluster", warned=(problems,))
        of = get(one, "metadata", "labels").get("serving.knative.dev/service")
        if _is(one, "Revision") and of in names:
            found = _revision(one, live)
            if found.wrong or found.warned:
                yield found
