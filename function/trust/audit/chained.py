"""An audit as a chain of lines, which one thread makes and hands to a sink.

Many tasks write at once. The thread takes all that has come, makes a line of each behind the one
before, hands them to the system, has them reach the disk together where that is wanted, and then
tells all who wait. So the chain has the order in which records came, and a line that cannot be
written is no part of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from function import tasks
from function.problems import RetryLaterError
from function.trust.audit.chain import ChainWriter
from function.trust.audit.record import AuditKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from function.trust.audit.chain import ChainHead
    from function.trust.audit.keyring import AuditKey
    from function.trust.audit.record import AuditRecord
    from function.trust.audit.sinks.protocol import LineSink

log = logging.getLogger("ember.trust")

_AT_ONCE = 256
_WAITING = 10_000
_PATIENCE_S = 5.0
_AGAIN_S = 2.0
_LOG_EVERY = 100


class Uploads(Protocol):
    """Brings elsewhere what a sink has taken."""

    async def run(
        self, tick: Callable[[], None], witness: Callable[[Sequence[ChainHead]], None]
    ) -> None:
        """Do so for ever.

        Args:
            tick: to be called now and then.
            witness: to be told how far other chains are.
        """
        ...

    async def finish(self, patience_s: float) -> None:
        """Bring what is left, and end."""
        ...


@dataclass(slots=True)
class _Entry:
    """One line that is wanted, or (without facts) something to be done by the thread."""

    facts: Mapping[str, Any]
    done: asyncio.Future[None] | None = None
    error: Exception | None = None
    tick: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class AuditRules:
    """How an audit is kept.

    Attributes:
        key: makes codes and digests.
        fail_open: whether what cannot be written down is done nevertheless, and counted.
        names: whether callers stand in it by name.
        opening: what the first line says of the process, such as its version.
    """

    key: AuditKey
    fail_open: bool = False
    names: bool = False
    opening: Mapping[str, Any] = field(default_factory=dict)


class ChainedAudit:
    """An `AuditLog` whose lines go to a sink.

    Args:
        sink: takes the lines.
        rules: how it is kept.
        uploads: brings them elsewhere.
        patience_s: how long a line may take until it counts as not written.
    """

    enabled = True

    def __init__(
        self,
        sink: LineSink,
        rules: AuditRules,
        uploads: Uploads | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._sink, self._rules, self._uploads = sink, rules, uploads
        self._patience_s = patience_s
        self._chain = ChainWriter(rules.key)
        self._queue: queue.SimpleQueue[_Entry] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._uploading: asyncio.Task[None] | None = None
        self._open, self._missed, self._failures = False, 0, 0
        self._counting = threading.Lock()
        self.on_written: list[Callable[[str], None]] = []
        self.on_failed: list[Callable[[str], None]] = []

    @property
    def chain(self) -> str:
        """The name of the chain."""
        return self._chain.chain

    def digest(self, data: bytes | Path) -> str:
        """See `AuditLog`."""
        return self._rules.key.digest(data)

    async def start(self) -> None:
        """Begin; the first line is written when the sink can be opened, now or later."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()
        self._queue.put(_Entry({}, tick=True))
        if self._uploads:
            self._uploading = asyncio.create_task(self._uploads.run(self._tick, self._witness))

    async def write(self, record: AuditRecord) -> None:
        """See `AuditLog`."""
        kind = str(record.kind)
        try:
            await self._written(record.facts(self._caller))
        except (OSError, TimeoutError) as error:
            for listener in self.on_failed:
                listener(kind)
            self._complain(error)
            if not self._rules.fail_open:
                raise RetryLaterError(
                    "audit_unavailable",
                    "What is done here is written down, and that is not possible at the moment.",
                    _AGAIN_S,
                ) from error
        else:
            for listener in self.on_written:
                listener(kind)

    async def close(self, patience_s: float) -> None:
        """Write the last line, and bring everything to its place."""
        if self._thread is None:
            return
        with suppress(OSError, TimeoutError):
            await self._written({"kind": str(AuditKind.STOP)}, last=True)
        self._thread = None
        if self._uploads and self._uploading:
            await tasks.end(self._uploading)
            await self._uploads.finish(patience_s)

    def _caller(self, subject: str) -> str:
        return subject if self._rules.names else self.digest(subject.encode())

    async def _written(self, facts: Mapping[str, Any], *, last: bool = False) -> None:
        """Return when a line of these facts is kept.

        Raises:
            OSError: it cannot be.
            TimeoutError: it takes too long; it may still be kept.
        """
        if self._queue.qsize() >= _WAITING and not last:
            self._miss(1)
            raise TimeoutError
        done = self._loop.create_future()
        self._queue.put(_Entry(facts, done, last=last))
        async with asyncio.timeout(self._patience_s):
            await done

    def _miss(self, count: int) -> None:
        """Count records that are done nevertheless and stand nowhere."""
        if self._rules.fail_open:
            with self._counting:
                self._missed += count

    def _tick(self) -> None:
        self._queue.put(_Entry({}, tick=True))

    def _witness(self, seen: Sequence[ChainHead]) -> None:
        """Write down how far other chains are; nobody waits for that."""
        others = [head.facts() for head in seen if head.chain != self._chain.chain]
        if others:
            self._queue.put(_Entry({"kind": str(AuditKind.WITNESS), "seen": others}))

    def _complain(self, error: Exception) -> None:
        """Log the first failure, and then some, as each request has one."""
        if self._failures % _LOG_EVERY == 0:
            reason = getattr(error, "strerror", None) or str(error) or "it takes too long"
            facts = {"reason": reason, "failures": self._failures + 1}
            log.error("the audit cannot be written", extra=facts)
        self._failures += 1

    # What follows is done by the thread.

    def _run(self) -> None:
        while True:
            entries = [self._queue.get()]
            while len(entries) < _AT_ONCE:
                try:
                    entries.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            self._keep(entries)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(_tell, entries)
            if any(entry.last for entry in entries):
                return

    def _keep(self, entries: Sequence[_Entry]) -> None:
        """Write the lines of entries; those that cannot be get their `error`."""
        for entry in entries:
            try:
                self._open_chain()
                if entry.tick:
                    self._sink.tick()
                else:
                    self._append(entry.facts)
            except Exception as error:  # whoever waits has to know
                entry.error = error
                if entry.done and not entry.last:
                    self._miss(1)
            if entry.last:
                with suppress(OSError):
                    self._sink.close()
        try:
            self._sink.sync()
        except OSError as error:  # what the disk has of them is not known
            for entry in entries:
                entry.error = entry.error or error

    def _open_chain(self) -> None:
        """Begin the chain, unless that is done."""
        if self._open:
            return
        seen = self._sink.open(self._chain.chain)
        self._append(
            {
                **self._rules.opening,
                "kind": str(AuditKind.START),
                "replica": socket.gethostname(),
                "pid": os.getpid(),
                "seen": [head.facts() for head in seen],
            },
        )
        self._open = True

    def _append(self, facts: Mapping[str, Any]) -> None:
        if (missed := self._missed) and facts["kind"] != AuditKind.START:
            self._add({"kind": str(AuditKind.MISSED), "count": missed})
            self._miss(-missed)
        self._add(facts)

    def _add(self, facts: Mapping[str, Any]) -> None:
        self._sink.append(self._chain.line(facts), self._chain.seq)
        self._chain.advance()


def _tell(entries: Sequence[_Entry]) -> None:
    """Say to all who wait what became of their lines."""
    for entry in entries:
        if entry.done is None or entry.done.done():
            continue
        if entry.error:
            entry.done.set_exception(entry.error)
        else:
            entry.done.set_result(None)
