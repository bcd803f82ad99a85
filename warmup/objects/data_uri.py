"""`data:` URIs (RFC 2397): what is behind them is in them."""

from __future__ import annotations

import asyncio
import binascii
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from warmup.objects.errors import MalformedError, RefusedError, TooLargeError
from warmup.objects.protocol import Facts, Object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warmup.objects.protocol import Take

_AT_ONCE = 256 * 1024  # characters; more are decoded on a thread
_MAX_HEAD = 1024  # characters up to the comma
MAX_ESCAPED = 1024**2  # decoding escapes takes far more time and memory than they have characters
_ESCAPES = [
    (f"%{code}".encode(), letter.encode())
    for letter in "+/="
    for code in {f"{ord(letter):X}", f"{ord(letter):x}"}
]
"""The letters of base64 that have a meaning in URIs; nobody escapes others."""


class DataStore:
    """An `ObjectStore` of `data:` URIs, to which nothing can be written."""

    async def stat(self, uri: str) -> Facts:
        """The declared media type."""
        media_type, _, _ = _head(uri.encode(errors="surrogatepass"))
        return Facts(media_type=media_type or None)

    async def read(self, uri: str, limit: int, take: Take) -> Object:  # noqa: ARG002
        """Decode it, base64 or percent-encoded; room for it is taken where the URI came in.

        Raises:
            MalformedError: it is, or it is percent-encoded and long.
        """
        coded = uri.encode(errors="surrogatepass")
        if len(coded) <= _AT_ONCE:
            found = decoded(coded)
        else:
            found = await asyncio.to_thread(decoded, coded)
        if len(found.data) > limit:
            raise TooLargeError(limit, len(found.data))
        return found

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
        raise RefusedError("Nothing can be written to a data: URI.")

    async def delete(self, uri: str) -> None:  # noqa: ARG002
        """Refuse."""
        raise RefusedError("Nothing can be deleted at a data: URI.")

    async def close(self) -> None:
        """Do nothing."""


def decoded(uri: bytes | memoryview) -> Object:
    """What is in a URI. Besides it and the result, this holds no more than two copies of it.

    Raises:
        MalformedError: it is, or it is percent-encoded and long.
    """
    media_type, start, is_base64 = _head(bytes(uri[:_MAX_HEAD]))
    if not is_base64 and len(uri) > MAX_ESCAPED:
        raise MalformedError(
            f"The data: URI is longer than {MAX_ESCAPED} characters, and not base64.",
            limit=MAX_ESCAPED,
            hint="Use base64 (data:image/jpeg;base64,…).",
        )
    payload = memoryview(uri)[start:]
    try:
        data = _from_base64(payload) if is_base64 else _unescaped(payload)
    except ValueError:
        raise MalformedError(
            "The data: URI is not well encoded; base64 has the letters A–Z, a–z, 0–9, + and /.",
        ) from None
    return Object(data, Facts(len(data), media_type=media_type or None))


def _head(uri: bytes) -> tuple[str, int, bool]:
    """The media type, where the data begins, and whether it is base64."""
    comma = uri.find(b",", 0, _MAX_HEAD)
    if comma < 0:
        raise MalformedError(f"The data: URI has no comma in its first {_MAX_HEAD} characters.")
    head = uri[uri.index(b":") + 1 : comma].decode(errors="replace")
    media_type, *parameters = (part.strip().lower() for part in head.split(";"))
    return media_type, comma + 1, "base64" in parameters


def _from_base64(text: memoryview) -> bytes:
    """The bytes; padding may be left out."""
    if re.search(b"%", text):
        plain = bytes(text)
        for escape, letter in _ESCAPES:
            plain = plain.replace(escape, letter)
        text = memoryview(plain)
    whole, rest = text[: len(text) // 4 * 4], bytes(text[len(text) // 4 * 4 :])
    data = binascii.a2b_base64(whole, strict_mode=True)
    if not rest:
        return data
    if bytes(whole[-1:]) == b"=":
        raise ValueError("there is more behind the padding")
    return data + binascii.a2b_base64(rest.ljust(4, b"="), strict_mode=True)


def _unescaped(text: memoryview) -> bytes:
    if not (plain := bytes(text)).isascii():
        raise ValueError("not ASCII")
    return unquote_to_bytes(plain)
