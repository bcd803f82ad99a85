"""What a C2PA manifest says of a swap; a table of values, without the library that signs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.trust.statement import Statement

SIGNABLE = frozenset(
    {
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/avif",
        "image/gif",
        "image/tiff",
        "image/heic",
        "image/heif",
        "video/mp4",
        "video/quicktime",
    }
)
"""The media types into which C2PA can be put; Matroska and WebM have no place for it."""

SWAP = "dev.ember.swap"
"""The assertion with what only Ember knows of a swap."""
CONSENT = "dev.ember.consent"
"""The assertion with the digest of what was said about consent."""


def definition(
    statement: Statement, media_type: str, consent: str | None, *, edits: bool
) -> dict[str, Any]:
    """The manifest of an output, as c2pa-python's `Builder` takes it.

    There is nothing personal in it: the target is an ingredient without a name, and consent is
    there as a digest.

    Args:
        statement: what the output says of itself.
        media_type: of the output.
        consent: the SHA-256 of the statement of consent, in hexadecimal; None where there is none.
        edits: whether the target is an ingredient; without one, the output counts as new.
    """
    assertions = [
        {"label": "c2pa.actions.v2", "data": {"actions": [_action(statement, edits=edits)]}},
        {"label": SWAP, "data": {"request_id": statement.request_id}},
    ]
    if consent is not None:
        assertions.append({"label": CONSENT, "data": {"alg": "sha256", "digest": consent}})
    return {
        "claim_generator_info": [_software(statement)],
        "format": media_type,
        "assertions": assertions,
    }


def _action(statement: Statement, *, edits: bool) -> dict[str, Any]:
    """What was done. Before it, the library says itself that an ingredient was opened."""
    return {
        "action": "c2pa.edited" if edits else "c2pa.created",
        "digitalSourceType": statement.source_type.uri,
        "softwareAgent": _software(statement),
        "description": "A face was replaced with that of another person.",
    }


def _software(statement: Statement) -> dict[str, str]:
    """Name and version apart, as C2PA has them."""
    name, _, version = statement.software.rpartition(" ")
    return {"name": name, "version": version} if name else {"name": version}
