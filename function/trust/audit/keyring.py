"""Keys of the audit: whoever has none can neither write a line nor find out whom a digest is of.

A file has one key a line, 64 or more hexadecimal digits, the one that writes first. Keys that were
used before stay below it for as long as what they wrote is kept. Lines that begin with # are
remarks.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

_PIECE = 1024**2
_KEY = re.compile(r"([0-9a-fA-F]{2}){32,64}")


@dataclass(frozen=True, slots=True)
class AuditKey:
    """One key, or its absence.

    Attributes:
        id: names it in each line, 8 hexadecimal digits; "" where there is none.
        chain: makes the codes (HMAC-SHA256) that chain lines; empty for plain SHA-256.
        content: likewise, the digests of photos and names.
    """

    id: str
    chain: bytes = field(repr=False)
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """The keys for each use that follow from a secret."""
        name, chain, content = (
            hmac.digest(secret, b"ember audit " + use, "sha256")
            for use in (b"id", b"chain", b"content")
        )
        return cls(name.hex()[:8], chain, content)

    def code(self, line: bytes) -> str:
        """The code of a line, 64 hexadecimal digits."""
        return _digest(self.chain, line)

    def digest(self, data: bytes | Path) -> str:
        """The digest of a photo or of a file, or of anything else, 64 hexadecimal digits.

        It takes about a millisecond for two megabytes, and lets other threads run meanwhile.

        Raises:
            OSError: the file cannot be read.
        """
        if isinstance(data, bytes):
            return _digest(self.content, data)
        found = hmac.new(self.content, digestmod="sha256") if self.content else hashlib.sha256()
        with data.open("rb") as file:
            while piece := file.read(_PIECE):
                found.update(piece)
        return found.hexdigest()


KEYLESS = AuditKey("", b"", b"")
"""Plain SHA-256, which anybody can compute."""


def new() -> str:
    """A line for a file of keys."""
    return secrets.token_hex(32)


def read(path: Path) -> tuple[AuditKey, ...]:
    """The keys of a file, the one that writes first.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has no key, or a line that is none. Its text has nothing of the file.
    """
    found = []
    for number, line in enumerate(path.read_text("ascii", "replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not _KEY.fullmatch(text):
            raise ValueError(f"line {number} is not 64 or more hexadecimal digits")
        found.append(AuditKey.of(bytes.fromhex(text)))
    if not found:
        raise ValueError("there is no key in it; `ember audit key` makes one")
    return tuple(found)


def _digest(key: bytes, data: bytes) -> str:
    if not key:
        return hashlib.sha256(data).hexdigest()
    return hmac.new(key, data, hashlib.sha256).hexdigest()
