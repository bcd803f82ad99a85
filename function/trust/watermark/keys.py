"""The keys of the imperceptible mark. Who has one can read its marks, and remove or forge them.

A file has a line for each key: its number, 1 to 255, and a secret of 32 to 128 hexadecimal digits;
what follows a # is a comment. The last key is the one that marks are made with. The others are only
read with, so that what was marked before a change of keys is still recognised:

    1 03b1a94c…
    2 8f0c5d6e…   # since May
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DIGEST_BITS = 40
_SECRET = re.compile(r"(?:[0-9a-fA-F]{2}){16,64}")


@dataclass(frozen=True, slots=True)
class WatermarkKey:
    """One key.

    Attributes:
        id: 0 … 255; it is part of what a mark says.
        secret: what decides which waves carry the bits, and what a request's digest is made with.
    """

    id: int
    secret: bytes = field(repr=False)

    def payload(self, request_id: str) -> int:
        """What a mark says: 8 bits for the key, and the first 40 of HMAC-SHA256 of the request."""
        digest = hmac.digest(self.secret, request_id.encode(), hashlib.sha256)
        return self.id << _DIGEST_BITS | int.from_bytes(digest[: _DIGEST_BITS // 8], "big")


PUBLIC = WatermarkKey(0, b"Ember's public watermark key: whoever has Ember can read its marks")
"""The key where an operator names none."""


@dataclass(frozen=True, slots=True)
class WatermarkKeys:
    """The keys of a deployment.

    Attributes:
        current: what marks are made with.
        others: what is only read with.
    """

    current: WatermarkKey = PUBLIC
    others: tuple[WatermarkKey, ...] = ()

    @property
    def readable(self) -> tuple[WatermarkKey, ...]:
        """Every key that is read with; the public one is always among them."""
        return tuple({key.id: key for key in (PUBLIC, *self.others, self.current)}.values())[::-1]


def key_id(payload: int) -> int:
    """The number of the key that a payload names."""
    return payload >> _DIGEST_BITS


def text(payload: int) -> str:
    """A payload as people and the audit see it: 12 hexadecimal digits."""
    return f"{payload:012x}"


def read_keys(path: Path) -> WatermarkKeys:
    """The keys of a file.

    Raises:
        ValueError: it cannot be read, has no key, or a line makes no sense; no secret is quoted.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ValueError(f"The watermark keys in {path} cannot be read: {reason}.") from None
    keys: dict[int, WatermarkKey] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not _SECRET.fullmatch(words[1]) or not words[0].isdecimal():
            raise ValueError(f"{path}, line {number}, is not a number and 32 to 128 hex digits.")
        key = WatermarkKey(int(words[0]), bytes.fromhex(words[1]))
        if not 1 <= key.id <= 255:
            raise ValueError(f"{path}, line {number}: a key's number is between 1 and 255.")
        if key.id in keys:
            raise ValueError(f"{path}, line {number}, has the number of an earlier line.")
        keys[key.id] = key
    if not keys:
        raise ValueError(f"{path} has no watermark key.")
    *others, current = keys.values()
    return WatermarkKeys(current, tuple(others))
