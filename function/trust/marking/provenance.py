"""What is known of how a file was made: said of an output, found in a file, kept of an input.

The properties, and why these:

- `Iptc4xmpExt:DigitalSourceType`: the term of IPTC's vocabulary, as its full address.
- `xmp:CreatorTool`: the software and its version.
- `xmpBJ:JobRef`, in it `stJob:id`: the request. XMP has this property for the job in which a file
  was used, with a number of "some external job management system". `xmpMM:DocumentID` and
  `InstanceID` are names of one file, of which a request may make several.
- `TC260:AIGC`: the label of China's standard (`aigc.py`).
- `xmpMM:Ingredients` and `xmpMM:Pantry`: what an output was made of. XMP has the first for
  references to what went into a file, and the second for properties taken over from the packets of
  those, each with an `xmpMM:InstanceID` to which the first refers; what an ingredient itself has in
  its pantry moves to the pantry of the whole (ISO 16684-1 with Adobe's part 2, Media Management).
"""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.trust.marking import aigc, xmp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.trust.marking.containers.carried import Carried
    from function.trust.marking.xmp import Value
    from function.trust.statement import Statement

log = logging.getLogger("ember.trust")

MOST_INGREDIENTS = 32
"""Of one output; a swap of a swap of a swap has three."""

_MOST_TEXT = 4096
"""Characters of one value that is kept of an ingredient."""
_MOST_PANTRY = 40_000
"""Bytes of the pantry, which has to fit into a segment of a JPEG with the rest."""

_SOURCE, _TOOL, _LABEL = "Iptc4xmpExt:DigitalSourceType", "xmp:CreatorTool", "TC260:AIGC"
_JOBS, _JOB = "xmpBJ:JobRef", "stJob:id"
_INSTANCE, _INGREDIENTS, _PANTRY = "xmpMM:InstanceID", "xmpMM:Ingredients", "xmpMM:Pantry"
_MANIFEST = "dcterms:provenance"
_REFERENCE = "stRef:instanceID", "stRef:documentID", "stRef:originalDocumentID"
_EVENT = "stEvt:action", "stEvt:softwareAgent", "stEvt:when", "stEvt:instanceID", "stEvt:parameters"

_SANE = re.compile(r"[\w.:/#-]{1,128}", re.ASCII)
"""A name of an ingredient that is kept."""

_KEPT: dict[str, tuple[str, ...]] = {
    _SOURCE: (),
    _LABEL: (),
    _MANIFEST: (),
    _TOOL: (),
    "Iptc4xmpExt:AISystemUsed": (),
    "Iptc4xmpExt:AISystemVersionUsed": (),
    "photoshop:Credit": (),
    "xmpMM:OriginalDocumentID": (),
    "xmpMM:DocumentID": (),
    _INSTANCE: (),
    _JOBS: (_JOB,),
    "xmpMM:DerivedFrom": _REFERENCE,
    _INGREDIENTS: _REFERENCE,
    "xmpMM:History": _EVENT,
}
"""What is kept of an input, the most telling first, and the fields that are kept of structures.

It is a list of what may stay, so that places, cameras, names of people and of files, keywords and
marked faces do not, whatever they are called.
"""


@dataclass(frozen=True, slots=True)
class FoundMetadata:
    """What a file says of its making. None of it is proven: anybody can write it.

    Attributes:
        source_type: the address of the term of IPTC's vocabulary; "" for none.
        software: what wrote it, with its version.
        request_id: the request that made it.
        aigc: the fields of the label of China's standard; empty for none.
        ingredients: what it was made of says of itself, as far as it is kept.
        packets: the XMP packets, as they are in the file.
        manifest: whether there is a C2PA manifest, be it valid or not.
    """

    source_type: str = ""
    software: str = ""
    request_id: str = ""
    aigc: Mapping[str, str] | None = None
    ingredients: tuple[FoundMetadata, ...] = ()
    packets: tuple[bytes, ...] = ()
    manifest: bool = False


def packet(statement: Statement) -> bytes:
    """The XMP packet of an output: the same bytes for the same statement."""
    properties: dict[str, Value] = {
        _SOURCE: statement.source_type.uri,
        _TOOL: statement.software,
        _JOBS: [{_JOB: statement.request_id}],
    }
    if statement.producer:
        properties[_LABEL] = aigc.label(statement.producer, statement.request_id)
    made_of: dict[str, dict[str, Value]] = {}
    for each in statement.ingredients[:MOST_INGREDIENTS]:
        if kept := _kept(xmp.values(each)):
            made_of.setdefault(_name(kept), kept)
    if made_of:
        properties[_INGREDIENTS] = [{_REFERENCE[0]: name} for name in made_of]
        properties[_PANTRY] = _pantry(made_of)
    return xmp.written(properties)


def ingredients(carried: Carried) -> tuple[bytes, ...]:
    """What is kept of what an input carries: a packet for itself, then those of its ingredients.

    Args:
        carried: all that it carries.

    Returns:
        Packets for `Statement.ingredients`; none where it says nothing of its making.
    """
    read = [xmp.values(each) for each in carried.packets]
    own: dict[str, Value] = {}
    for each in read:
        own = _kept(each) | own
    for label in carried.labels:
        own.setdefault(_LABEL, label[:_MOST_TEXT])
    if carried.manifest:  # which C2PA writes here as well when it is asked to; "self" is the file
        own.setdefault(_MANIFEST, "self#jumbf=/c2pa")
    below = [_kept(item) for each in read for item in _items(each, _PANTRY)]
    found = [each for each in (own, *below) if each]
    if len(found) > MOST_INGREDIENTS:
        log.warning("%d ingredients of an input are left out", len(found) - MOST_INGREDIENTS)
    return tuple(xmp.written(each) for each in found[:MOST_INGREDIENTS])


def found(carried: Carried) -> FoundMetadata:
    """What a file says of its making; of several packets, the first that says something counts."""
    read: dict[str, Value] = {}
    for each in carried.packets:
        read = xmp.values(each) | read
    for label in carried.labels:
        read.setdefault(_LABEL, label)
    said = _said(read)
    below = tuple(_said(each) for each in _items(read, _PANTRY)[:MOST_INGREDIENTS])
    return FoundMetadata(
        said.source_type,
        said.software,
        said.request_id,
        said.aigc,
        below,
        carried.packets,
        carried.manifest,
    )


def _said(properties: Mapping[str, Value]) -> FoundMetadata:
    """What a file or an ingredient says by these properties."""
    jobs = _items(properties, _JOBS)
    return FoundMetadata(
        _text(properties.get(_SOURCE)),
        _text(properties.get(_TOOL)),
        _text(jobs[0].get(_JOB)) if jobs else "",
        aigc.fields(_text(properties.get(_LABEL))) or None,
    )


def _kept(properties: Mapping[str, Value]) -> dict[str, Value]:
    """Those of the properties that may be kept, in the order of `_KEPT`.

    Software that is all that a file names is what runs in the camera, which is nobody's business.
    """
    kept: dict[str, Value] = {}
    for name, fields in _KEPT.items():
        value = properties.get(name)
        every = [_only(each, fields) for each in _items(properties, name)]
        short: Value = [each for each in every if each]
        if not fields:
            short = _text(value)[:_MOST_TEXT]
        elif isinstance(value, dict):
            short = every[0]
        if short:
            kept[name] = short
    return kept if kept.keys() != {_TOOL} else {}


def _only(value: Mapping[str, Value], fields: tuple[str, ...]) -> dict[str, Value]:
    """These fields of a structure, as far as they are texts."""
    return {name: text for name in fields if (text := _text(value.get(name))[:_MOST_TEXT])}


def _name(ingredient: dict[str, Value]) -> str:
    """The name to refer to an ingredient by: its own, or one that follows from what it says."""
    own = _text(ingredient.get(_INSTANCE))
    if _SANE.fullmatch(own):
        return own
    return f"xmp.iid:{hashlib.sha256(xmp.written(ingredient)).hexdigest()[:32]}"


def _pantry(ingredients: Mapping[str, dict[str, Value]]) -> list[Value]:
    """What ingredients say, by their names; as much of it as fits.

    Each has the same room. What is too long is left out from the end of `_KEPT`, so that histories
    go first; that there is an ingredient stays in any case.
    """
    room = _MOST_PANTRY // len(ingredients)
    pantry: list[Value] = []
    for name, ingredient in ingredients.items():
        item: dict[str, Value] = {_INSTANCE: name}
        size = 0
        for key, value in ingredient.items():
            size += len(xmp.element(key, value).encode())
            if size > room:
                log.warning("%s and what follows of an ingredient is left out: too long", key)
                break
            item.setdefault(key, value)
        pantry.append(item)
    return pantry


def _items(properties: Mapping[str, Value], name: str) -> list[dict[str, Value]]:
    """The structures of a list; one by itself counts as a list of one."""
    value = properties.get(name)
    every = value if isinstance(value, list) else [value]
    return [each for each in every if isinstance(each, dict)]


def _text(value: Value | None) -> str:
    """A value as a text; of a list its first one."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return value if isinstance(value, str) else ""
