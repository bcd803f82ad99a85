"""Writes one signed copy of a file, with the target as its parent."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import c2pa

from function.trust.marking.c2pa_manifest import SIGNABLE, definition

if TYPE_CHECKING:
    from function.trust.statement import Statement

log = logging.getLogger(__name__)

_PARENT = {"relationship": "parentOf"}


@dataclass(frozen=True, slots=True)
class SigningWork:
    """What is signed, beside the bytes.

    Attributes:
        media_type: of the output.
        statement: what it says of itself.
        ingredient: the target as it came; None for none.
        ingredient_type: its media type; "" where it is not known.
        consent: the SHA-256 of the statement of consent, in hexadecimal; None for none.
    """

    media_type: str
    statement: Statement
    ingredient: BinaryIO | None = None
    ingredient_type: str = ""
    consent: str | None = None


def write(
    source: BinaryIO, out: BinaryIO, work: SigningWork, signer: c2pa.Signer, context: c2pa.Context
) -> None:
    """Write a signed copy of a file.

    Raises:
        c2pa.C2paError: it cannot be signed.
    """
    builder = _builder(work, context)
    try:
        builder.sign(signer, work.media_type, source, out)
    finally:
        builder.close()


def _builder(work: SigningWork, context: c2pa.Context) -> c2pa.Builder:
    """The manifest of an output, with its ingredient."""
    edits = work.ingredient is not None
    manifest = definition(work.statement, work.media_type, work.consent, edits=edits)
    if work.ingredient is None:
        return c2pa.Builder(manifest, context)
    if work.ingredient_type in SIGNABLE:
        builder = _editing(manifest, context)
        try:
            builder.add_ingredient(_PARENT, work.ingredient_type, work.ingredient)
        except c2pa.C2paError as error:
            # What could be decoded may still be too odd for the library; it has no manifest then.
            builder.close()
            log.warning("a target is no ingredient", extra={"reason": str(error)[:200]})
        else:
            return builder
    return _editing(manifest | {"ingredients": [_PARENT | _kind(work.ingredient_type)]}, context)


def _editing(manifest: dict[str, Any], context: c2pa.Context) -> c2pa.Builder:
    builder = c2pa.Builder(manifest, context)
    builder.set_intent(c2pa.C2paBuilderIntent.EDIT)
    return builder


def _kind(media_type: str) -> dict[str, str]:
    return {"format": media_type} if media_type else {}
