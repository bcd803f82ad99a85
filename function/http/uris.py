"""Images that a JSON request names by URI. Today only `data:`; others come in by a `Fetch`."""

from __future__ import annotations

import binascii
from typing import Protocol
from urllib.parse import unquote, unquote_to_bytes

from function.orders import Upload
from function.problems import Problem


class Fetch(Protocol):
    """Gets the image behind a URI."""

    async def __call__(self, uri: str, field: str) -> Upload:
        """Fetch one image.

        Args:
            uri: as the request has it.
            field: the request's field, for problems.

        Raises:
            Problem: it cannot be fetched.
        """
        ...


async def data_only(uri: str, field: str) -> Upload:
    """Read a `data:` URI (RFC 2397), base64 or percent-encoded.

    Raises:
        Problem: `bad_value` when it is malformed, `unsupported_uri` for every other scheme.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or not scheme.isascii() or not scheme.replace("+", "").isalnum():
        raise Problem("bad_value", f"`{field}` is not a URI.", field=field)
    if scheme.lower() != "data":
        raise Problem(
            "unsupported_uri",
            f"`{field}` has a URI of the scheme {scheme.lower()[:20]}; only data: is supported.",
            field=field,
        )
    head, comma, text = rest.partition(",")
    if not comma:
        raise Problem("bad_value", f"The data: URI in `{field}` has no comma.", field=field)
    media_type, *parameters = (part.strip().lower() for part in head.split(";"))
    try:
        data = _decoded(text, is_base64="base64" in parameters)
    except ValueError:
        raise Problem(
            "bad_value",
            f"The data: URI in `{field}` is not well encoded; base64 has the letters A–Z, a–z, "
            "0–9, + and /.",
            field=field,
        ) from None
    return Upload(data, field, media_type or None)


def _decoded(text: str, *, is_base64: bool) -> bytes:
    """The data part of a URI; padding may be left out. Long texts are not copied needlessly."""
    if not is_base64:
        return unquote_to_bytes(text.encode("ascii"))
    if "%" in text:
        text = unquote(text)
    if missing := -len(text) % 4:
        text += "=" * missing
    return binascii.a2b_base64(text, strict_mode=True)
