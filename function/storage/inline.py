"""`data:` URIs (RFC 2397): what is behind them is in them."""

from __future__ import annotations

import asyncio
import binascii
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from function.problems import Problem
from function.storage.place import Facts, Object, forbidden, too_large

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.storage.place import Take

_AT_ONCE = 256 * 1024  # characters; more are decoded on a thread
_MAX_HEAD = 1024  # characters up to the comma
_MAX_ESCAPED = 1024**2  # decoding escapes takes far more time and memory than they have characters
_ESCAPES = [
    (f"%{code}", letter) for letter in "+/=" for code in {f"{ord(letter):X}", f"{ord(letter):x}"}
]
"""The letters of base64 that have a meaning in URIs; nobody escapes others."""


class Inline:
    """See `Place`; nothing can be written."""

    async def stat(self, uri: str) -> Facts:
        """See `Place`."""
        media_type, _, _ = _head(uri)
        return Facts(media_type=media_type or None)

    async def read(self, uri: str, limit: int, take: Take) -> Object:  # noqa: ARG002
        """Decode it, base64 or percent-encoded; room for it is taken where the URI came in.

        Raises:
            Problem: `bad_value` when it is malformed, or percent-encoded and long.
        """
        media_type, start, is_base64 = _head(uri)
        if not is_base64 and len(uri) > _MAX_ESCAPED:
            raise Problem(
                "bad_value",
                f"The data: URI is longer than {_MAX_ESCAPED} characters, and not base64.",
                limit=_MAX_ESCAPED,
                hint="Use base64 (data:image/jpeg;base64,…).",
            )
        try:
            if len(uri) <= _AT_ONCE:
                data = _decoded(uri, start, is_base64=is_base64)
            else:
                data = await asyncio.to_thread(_decoded, uri, start, is_base64=is_base64)
        except ValueError:
            raise Problem(
                "bad_value",
                "The data: URI is not well encoded; base64 has the letters A–Z, a–z, 0–9, + and /.",
            ) from None
        if len(data) > limit:
            raise too_large(limit, len(data))
        return Object(data, Facts(len(data), media_type or None))

    async def write(
        self,
        uri: str,  # noqa: ARG002
        data: bytes,  # noqa: ARG002
        *,
        media_type: str,  # noqa: ARG002
        metadata: Mapping[str, str],  # noqa: ARG002
        if_generation_match: int | None,  # noqa: ARG002
    ) -> int | None:
        """Refuse."""
        raise forbidden("Nothing can be written to a data: URI.")

    async def delete(self, uri: str) -> None:  # noqa: ARG002
        """Refuse."""
        raise forbidden("Nothing can be deleted at a data: URI.")

    async def close(self) -> None:
        """See `Place`."""


def _head(uri: str) -> tuple[str, int, bool]:
    """The media type, where the data begins, and whether it is base64."""
    comma = uri.find(",", 0, _MAX_HEAD)
    if comma < 0:
        raise Problem(
            "bad_value", f"The data: URI has no comma in its first {_MAX_HEAD} characters."
        )
    head = uri[uri.index(":") + 1 : comma]
    media_type, *parameters = (part.strip().lower() for part in head.split(";"))
    return media_type, comma + 1, "base64" in parameters


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
