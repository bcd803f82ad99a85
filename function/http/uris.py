"""Images that a JSON request names by URI. Today only `data:`; others come in by a `Fetch`."""

from __future__ import annotations

import binascii
from typing import Protocol
from urllib.parse import unquote_to_bytes

from function.http.aside import aside
from function.orders import Upload
from function.problems import Problem

_MAX_HEAD = 1024  # characters up to the comma
_MAX_ESCAPED = 1024**2  # decoding escapes takes far more time and memory than they have characters
_ESCAPES = [
    (f"%{code}", letter) for letter in "+/=" for code in {f"{ord(letter):X}", f"{ord(letter):x}"}
]
"""The letters of base64 that have a meaning in URIs; nobody escapes others."""


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
        Problem: `bad_value` when it is malformed, or percent-encoded and long; `unsupported_uri`
            for every other scheme.
    """
    scheme, colon, _ = uri[:_MAX_HEAD].partition(":")
    if not colon or not scheme.isascii() or not scheme.replace("+", "").isalnum():
        raise Problem("bad_value", f"`{field}` is not a URI.", field=field)
    if scheme.lower() != "data":
        raise Problem(
            "unsupported_uri",
            f"`{field}` has a URI of the scheme {scheme.lower()[:20]}; only data: is supported.",
            field=field,
        )
    comma = uri.find(",", 0, _MAX_HEAD)
    if comma < 0:
        raise Problem(
            "bad_value",
            f"The data: URI in `{field}` has no comma in its first {_MAX_HEAD} characters.",
            field=field,
        )
    head = uri[len(scheme) + 1 : comma]
    media_type, *parameters = (part.strip().lower() for part in head.split(";"))
    is_base64 = "base64" in parameters
    if not is_base64 and len(uri) > _MAX_ESCAPED:
        raise Problem(
            "bad_value",
            f"The data: URI in `{field}` is longer than {_MAX_ESCAPED} characters, and not base64.",
            field=field,
            limit=_MAX_ESCAPED,
            hint="Use base64 (data:image/jpeg;base64,…).",
        )
    try:
        data = await aside(len(uri), _decoded, uri, comma + 1, is_base64=is_base64)
    except ValueError:
        raise Problem(
            "bad_value",
            f"The data: URI in `{field}` is not well encoded; base64 has the letters A–Z, a–z, "
            "0–9, + and /.",
            field=field,
        ) from None
    return Upload(data, field, media_type or None)


def _decoded(uri: str, start: int, *, is_base64: bool) -> bytes:
    """The data part of a URI; padding may be left out."""
    text = uri[start:]
    if not is_base64:
        return unquote_to_bytes(text.encode("ascii"))
    if "%" in text:
        for escape, letter in _ESCAPES:
            text = text.replace(escape, letter)
    if missing := -len(text) % 4:
        text += "=" * missing
    return binascii.a2b_base64(text, strict_mode=True)
