"""Every pair of components in both orders, rendered by few processes; and what each changes.

kustomize takes longer to start than to render, so all pairs with one component are resources of one
kustomization, each in a namespace of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from keepalive.doctor.pairs import NEEDS
from tests.knative import overlay
from tests.knative.manifests import Manifests, kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WIDE = "Namespace|PriorityClass|ClusterRole|ClusterRoleBinding|DeviceClass"
"""Kinds that belong to no namespace: of the same name, only one may be in a kustomization."""
_HASHED = ("ConfigMap", "Job")
"""Kinds whose names end in a hash of their content."""
COPY = "ember-engine-build"
"""The Job whose pod is a copy of the Service's."""


def with_needs(names: Sequence[str]) -> tuple[str, ...]:
    """Components, each after what it needs."""
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys((*NEEDS.get(name, ()), name))
    return tuple(found)


def rendered(folder: Path, lists: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Manifests]:
    """What each list of components renders to, without what belongs to no namespace.

    Args:
        folder: an empty one.
        lists: names of components, in order.

    Raises:
        AssertionError: kustomize does not take one.
    """
    for number, names in enumerate(lists):
        made = folder / f"n{number}"
        made.mkdir()
        overlay.kustomization(made, names, namespace=made.name, without=WIDE)
    resources = [f"n{number}" for number in range(len(lists))]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": resources}))
    words = [kubectl(), "kustomize", str(folder)]
    environ = {**os.environ, "GOGC": "400"}  # memory is there, and it saves a third of the time
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    apart: dict[str, list[dict[str, Any]]] = {name: [] for name in resources}
    for document in yaml.load_all(done.stdout, yaml.CSafeLoader):
        space = document["metadata"]["namespace"]
        apart[space].append(json.loads(json.dumps(document).replace(f'"{space}"', '"ember"')))
    return {names: overlay.allowed(apart[f"n{number}"]) for number, names in enumerate(lists)}


@dataclass(frozen=True, slots=True)
class Effect:
    """What one component makes of the base and of what it needs.

    Attributes:
        set: each value that is new or another one, by its path.
        gone: paths of values that are not there any more.
    """

    set: dict[str, str]
    gone: frozenset[str]

    def lost(self, found: dict[str, str], other: Effect) -> Iterator[str]:
        """What of it is not among the leaves of something, in words.

        Args:
            found: the leaves.
            other: of the component beside it; in what that takes away whole, nothing need be set.
        """
        away = tuple(path.removesuffix("name") for path in other.gone if path.endswith("].name"))
        for path, value in self.set.items():
            if found.get(path) != value and not path.startswith(away):
                yield f"{path}: {value} became {found.get(path, 'nothing')}"
        for path in self.gone & found.keys():
            yield f"{path} is back: {found[path]}"


def effect(before: dict[str, str], after: dict[str, str]) -> Effect:
    """What has become of some leaves."""
    changed = {path: value for path, value in after.items() if before.get(path) != value}
    return Effect(changed, frozenset(before.keys() - after.keys()))


def leaves(manifests: Manifests) -> dict[str, str]:
    """Every single value by its path; members of lists by name, or else by what they are.

    What a Job has from the Service is not its own.
    """
    found: dict[str, str] = {}
    for document in manifests.documents:
        name = document["metadata"]["name"]
        if document["kind"] in _HASHED:  # to compare their content
            name = name.rpartition("-")[0]
        found |= _leaves(_unhashed(document, manifests), f"{document['kind']}/{name}")
    return {path: value for path, value in found.items() if found.get(_copied(path)) != value}


def _copied(path: str) -> str:
    return path.replace(f"Job/{COPY}", "Service/ember") if path.startswith("Job/") else ""


def _leaves(given: Any, at: str) -> dict[str, str]:
    if isinstance(given, dict):
        parts = {f"{at}.{key}": value for key, value in given.items()}
    elif isinstance(given, list):
        parts = {f"{at}[{_key(one)}]": one for one in given}
    else:
        return {at: json.dumps(given)}
    return {path: v for key, value in parts.items() for path, v in _leaves(value, key).items()}


def _key(member: Any) -> str:
    return str(member.get("name", member)) if isinstance(member, dict) else str(member)


def _unhashed(document: dict[str, Any], manifests: Manifests) -> dict[str, Any]:
    """With names as they were before they got a hash."""
    text = json.dumps(document)
    for one in (each for kind in _HASHED for each in manifests.of(kind)):
        name = one["metadata"]["name"]
        text = text.replace(f'"{name}"', f'"{name.rpartition("-")[0]}"')
    return json.loads(text)
