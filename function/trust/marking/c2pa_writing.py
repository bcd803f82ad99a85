"""Writes one signed copy of a file, with the target as its parent."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import c2pa

from function.trust.marking.c2pa_manifest import SIGNABLE, definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.trust.statement import Statement

log = logging.getLogger("ember.trust")

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

    What could be decoded may still be too odd for the library, as may a manifest that somebody has
    broken on purpose. Such a target is an ingredient without anything of its own.

    Args:
        source: the file.
        out: gets the copy; it can be read as well, and is empty.
        work: what else is signed.
        signer: signs.
        context: what the library may do.

    Raises:
        c2pa.C2paError: it cannot be signed.
    """
    failure = None
    if work.ingredient is not None and work.ingredient_type in SIGNABLE:
        try:
            with _builder(work, context) as builder:
                builder.add_ingredient(_PARENT, work.ingredient_type, work.ingredient)
                builder.sign(signer, work.media_type, source, out)
        except c2pa.C2paError as error:
            failure = str(error)[:200]
        else:
            return
    source.seek(0)
    out.seek(0)
    out.truncate()
    parent = [_PARENT | _kind(work.ingredient_type)] if work.ingredient is not None else []
    with _builder(work, context, parent) as builder:
        builder.sign(signer, work.media_type, source, out)
    if failure:
        log.warning("signed without what the target says of itself", extra={"reason": failure})


def _builder(
    work: SigningWork, context: c2pa.Context, ingredients: Sequence[dict[str, str]] = ()
) -> c2pa.Builder:
    """The manifest of an output."""
    edits = work.ingredient is not None
    manifest = definition(work.statement, work.media_type, work.consent, edits=edits)
    builder = c2pa.Builder(manifest | {"ingredients": [*ingredients]}, context)
    if edits:
        builder.set_intent(c2pa.C2paBuilderIntent.EDIT)
    return builder


def _kind(media_type: str) -> dict[str, str]:
    return {"format": media_type} if media_type else {}
