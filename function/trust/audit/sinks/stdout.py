"""Lines of the audit on standard output, for whatever collects it."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.trust.audit.chain import ChainHead

_PATIENCE_S = 1.0


class StdoutSink:
    """A `LineSink` of an open file, into which others may write as well.

    A line is one write: the lines of two processes never mix, as long as the kernel takes them
    whole, which pipes do up to 4096 bytes.

    Args:
        fd: the file.
    """

    def __init__(self, fd: int = 1) -> None:
        self._fd, self._partial = fd, False

    def open(self, chain: str) -> list[ChainHead]:  # noqa: ARG002
        """Nothing is seen of others there."""
        return []

    def append(self, line: bytes, seq: int) -> None:  # noqa: ARG002
        """Write a line; what was left of one that failed is ended first."""
        rest = memoryview(b"\n" + line if self._partial else line)
        while rest:
            try:
                written = os.write(self._fd, rest)
            except BlockingIOError:  # whoever started us has made it so
                if not select.select([], [self._fd], [], _PATIENCE_S)[1]:
                    raise
                continue
            self._partial = True
            rest = rest[written:]
        self._partial = False

    def sync(self) -> None:
        """Do nothing: what is behind it decides that."""

    def tick(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Leave it open for others."""
