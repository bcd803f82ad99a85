"""Images that a JSON request names by URI. Today only `data:`; others come in by a `Fetch`."""

from __future__ import annotations

import base64
import binascii
from typing import Protocol
from urllib.parse import unquote_to_bytes

from function.problems import Problem
from function.service import Upload


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
        data = unquote_to_bytes(text) if "%" in text else text.encode("ascii")
        if "base64" in parameters:
            data = base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Problem(
            "bad_value",
            f"The data: URI in `{field}` is not well encoded; base64 has the letters A–Z, a–z, "
            "0–9, + and /.",
            field=field,
        ) from None
    return Upload(data, field, media_type or None)
