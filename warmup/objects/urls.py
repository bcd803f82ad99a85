"""URLs as they were written: a signature in one may cover every byte of it."""

from __future__ import annotations

import re
import string
from urllib.parse import quote

from yarl import URL

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/?#]*)?(.*)", re.DOTALL)
_KEPT = string.ascii_letters + string.digits + string.punctuation


def exact(text: str) -> URL:
    """A URL, or a reference, whose path and query are asked for byte by byte as they are here.

    Only what no request can have in it is percent-encoded: spaces, what is not printable, and what
    is not ASCII.

    Raises:
        ValueError: it cannot be one.
    """
    match = _PARTS.fullmatch(text)
    scheme, authority, rest = match.groups() if match else (None, None, text)
    if authority and not authority.isascii():
        authority = str(URL(f"http:{authority}")).removeprefix("http:").removesuffix("/")
    return URL(f"{scheme or ''}{authority or ''}{quote(rest, safe=_KEPT)}", encoded=True)
