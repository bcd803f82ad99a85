"""What rules look up in a Knative Service whose shape is right; nulls count as absent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Thing = dict[str, Any]

REVISION = "spec.template.spec"
"""Where the specification of revisions is."""


class Role(Enum):
    """What a container is for."""

    SERVING = "serving"
    SIDECAR = "sidecar"
    INITIAL = "initial"


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a revision.

    Attributes:
        at: its path.
        role: what it is for.
        given: the container.
    """

    at: str
    role: Role
    given: Thing


def get(thing: Thing, *path: str) -> Thing:
    """What is at a path of mappings, empty where one of them is missing or something else."""
    for key in path:
        found = thing.get(key)
        thing = found if isinstance(found, dict) else {}
    return thing


def many(thing: Thing, name: str) -> list[Thing]:
    """The items of a list, none where it is missing or something else."""
    found = thing.get(name)
    return found if isinstance(found, list) else []


def template(service: Thing) -> Thing:
    """The template of a Service's revisions."""
    return get(service, "spec", "template")


def revision(service: Thing) -> Thing:
    """The specification of a Service's revisions."""
    return get(service, "spec", "template", "spec")


def annotations_of(service: Thing) -> dict[str, str]:
    """Those of a Service's revisions."""
    return get(service, "spec", "template", "metadata", "annotations")


def containers(spec: Thing) -> Iterator[Container]:
    """All containers of a revision; of several the one with ports serves."""
    alone = len(many(spec, "containers")) == 1
    for index, one in enumerate(many(spec, "containers")):
        role = Role.SERVING if alone or many(one, "ports") else Role.SIDECAR
        yield Container(f"{REVISION}.containers[{index}]", role, one)
    for index, one in enumerate(many(spec, "initContainers")):
        yield Container(f"{REVISION}.initContainers[{index}]", Role.INITIAL, one)
