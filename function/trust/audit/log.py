"""The audit: what is to be accounted for goes through `write` before anything is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from function.trust.audit.record import AuditRecord


class AuditLog(Protocol):
    """Writes down what has happened.

    Attributes:
        enabled: whether anything is written, so that digests need to be made.
        on_written: called in the event loop with the kind of each record that was written.
        on_failed: likewise, of each that was not.
    """

    enabled: bool
    on_written: list[Callable[[str], None]]
    on_failed: list[Callable[[str], None]]

    def digest(self, data: bytes | Path) -> str:
        """What stands for a photo, a file or a text in a record, 64 hexadecimal digits.

        It takes about a millisecond for two megabytes: of photos and files, call it in a thread.

        Raises:
            OSError: the file cannot be read.
        """
        ...

    async def start(self) -> None:
        """Begin. It waits for nothing outside of this process."""
        ...

    async def write(self, record: AuditRecord) -> None:
        """Return when the record is kept; only then may the answer be sent.

        A caller that is cancelled meanwhile does not keep it from being written.

        Raises:
            RetryLaterError: `audit_unavailable`: it cannot be written, and the operator wants
                nothing to be done that is not.
        """
        ...

    async def close(self, patience_s: float) -> None:
        """End, with what was written before in its place.

        Args:
            patience_s: how long that may take; what is left then is on the disk, for the next
                process.
        """
        ...


class NoAudit:
    """An `AuditLog` that writes nothing."""

    enabled = False

    def __init__(self) -> None:
        self.on_written: list[Callable[[str], None]] = []
        self.on_failed: list[Callable[[str], None]] = []

    def digest(self, data: bytes | Path) -> str:  # noqa: ARG002
        """Nothing is written, so nothing stands for it."""
        return ""

    async def start(self) -> None:
        """Do nothing."""

    async def write(self, record: AuditRecord) -> None:
        """Do nothing."""

    async def close(self, patience_s: float) -> None:
        """Do nothing."""
