"""A chain of lines: each carries the code of the one before it, and its own.

A line is a JSON object in one way of writing it (names sorted, no spaces, ASCII), and last its own
code: `{"at":"…","audit":1, … ,"mac":"…"}`. The code is of all that stands before it.

No name in it is one that collectors of logs take out (`time`, `severity`, `message`), and no number
has a fraction, as some of them write 3 as 3.0.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.trust.audit.keyring import AuditKey

FORMAT = 1
"""The number behind `audit` of each line, by which lines are told from others in a log."""

CHAIN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{16}")
"""The name of a chain: when it began, and a number that is random."""

HEX = 16
"""So many digits of a code name a line where there is little room."""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last line of a chain that somebody has seen.

    Attributes:
        chain: which.
        seq: the number of the line.
        mac: its code, or the first digits of it.
    """

    chain: str
    seq: int
    mac: str

    def facts(self) -> dict[str, Any]:
        """As it is written into a line."""
        return {"chain": self.chain, "seq": self.seq, "mac": self.mac[:HEX]}


class ChainWriter:
    """Makes lines of facts, each behind the one before.

    Args:
        key: makes the codes.
        chain: the name of the chain; a new one where it is left out.
    """

    def __init__(self, key: AuditKey, chain: str = "") -> None:
        self._key = key
        self.chain = chain or new_chain()
        self.seq, self._prev, self._pending = 0, "", ("", b"")

    def line(self, facts: Mapping[str, Any]) -> bytes:
        """The next line, with its end; the chain stays where it is until `advance`."""
        body = canonical(
            {
                **facts,
                "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
                "audit": FORMAT,
                "chain": self.chain,
                "key": self._key.id,
                "prev": self._prev,
                "seq": self.seq,
            }
        )
        mac = self._key.code(body)
        self._pending = mac, body
        return sealed(body, mac)

    def advance(self) -> None:
        """Go on: the line is written."""
        self._prev, self.seq = self._pending[0], self.seq + 1


def new_chain() -> str:
    """A name for a chain that begins now."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(8).hex()}"


def canonical(facts: Mapping[str, Any]) -> bytes:
    """Facts in the one way of writing them."""
    return _JSON.encode(facts).encode()


def sealed(body: bytes, mac: str) -> bytes:
    """A line with its code and its end."""
    return body[:-1] + b',"mac":"' + mac.encode() + b'"}\n'


_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
