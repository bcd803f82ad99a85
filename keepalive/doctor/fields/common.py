"""Kinds of fields that several parts of a Service have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.doctor import formats
from keepalive.doctor.shape import (
    INT64,
    Amount,
    Anything,
    BehindFlag,
    Fields,
    Many,
    Named,
    Switch,
    Text,
    Whole,
)

if TYPE_CHECKING:
    from keepalive.doctor.shape import FieldKind


def each(names: str, kind: FieldKind) -> dict[str, FieldKind]:
    """Several fields, of the names in a text, of one kind."""
    return dict.fromkeys(names.split(), kind)


def flag(name: str, kind: FieldKind) -> BehindFlag:
    """A field of a pod that needs a flag of config-features."""
    return BehindFlag(f"kubernetes.podspec-{name}", kind)


ANY, TEXT, COUNT, BIG = Anything(), Text(), Whole(), Whole(0, INT64)
SWITCH, TEXTS = Switch(), Many(Text())
SUBDOMAIN, LABEL = Text(formats.dns_subdomain), Text(formats.dns_label)
MODE = Whole(0, 0o777)  # Kubernetes: validateVolumeMode
ID = Whole()
STRINGS = Named(TEXT)

FIELD = Fields({"apiVersion": TEXT, "fieldPath": Text(formats.field_path)}, needs=("fieldPath",))
RESOURCE = Fields(
    {**each("containerName resource", TEXT), "divisor": Amount()}, needs=("resource",)
)
