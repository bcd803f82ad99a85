"""Windows of lines as objects of a bucket, each written once and never again.

    BASE/2026-12-01/090500-CHAIN-0000000000-0000000041-0123456789abcdef.jsonl

The name says when its first line was written, which lines it has, and the code of the last of them,
so that how far chains are is known from names alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from function.trust.audit.chain import HEX, ChainHead
from function.trust.audit.sinks.spool import left_over
from warmup.objects.errors import ChangedError, ObjectError, RefusedError
from warmup.objects.protocol import ObjectStore
from warmup.objects.thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from function.trust.audit.sinks.spool import Spool

log = logging.getLogger("ember.trust")

_NAME = re.compile(
    r".*/[0-9]{6}-([0-9]{8}T[0-9]{6}Z-[0-9a-f]{16})-([0-9]{10,})-([0-9]{10,})-([0-9a-f]{16})\.jsonl"
)
_MEDIA_TYPE = "application/x-ndjson"
_MOST = 20
_BACK = (timedelta(hours=2), timedelta(days=2), timedelta(days=60), None)
_LOOK_S = 1.0
_WITNESS_S, _WITNESS_AGAIN_S = 3600.0, 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


class BucketStore(ObjectStore, Protocol):
    """An object store that can say what it has."""

    async def names(self, base: str, start: str = "") -> list[str]:
        """The URIs that begin with `base`, in order, from that on whose rest is `start`."""
        ...


class BucketUploads:
    """Brings windows of a spool into a bucket, and those that processes before have left.

    Args:
        spool: where they are.
        store: reaches the bucket.
        base: the beginning of the URIs of objects; ends with `/`.
    """

    def __init__(self, spool: Spool, store: BucketStore, base: str) -> None:
        self._spool, self._store, self._base = spool, store, base
        self._failures, self._next_try, self._next_witness = 0, 0.0, 0.0

    async def run(
        self, tick: Callable[[], None], witness: Callable[[Sequence[ChainHead]], None]
    ) -> None:
        """Bring windows as they end, for ever; see `Uploads`."""
        while True:
            tick()
            now = time.monotonic()
            if now >= self._next_try:
                await self._try()
            if now >= self._next_witness:
                self._next_witness = now + _WITNESS_AGAIN_S
                with suppress(ObjectError):
                    witness(await heads(self._store, self._base))
                    self._next_witness = now + _WITNESS_S
            await asyncio.sleep(_LOOK_S)

    async def finish(self, patience_s: float) -> None:
        """Bring what there is, if that can be done in time."""
        try:
            async with asyncio.timeout(patience_s):
                await self._own()
                await self._left_over()
        except (ObjectError, OSError, TimeoutError) as error:
            facts = {"reason": str(error) or "it takes too long", "folder": str(self._spool.folder)}
            log.warning("some of the audit stays in the spool", extra=facts)
        self._spool.release()
        await self._store.close()

    async def _try(self) -> None:
        """Bring all there is; after a failure, wait longer each time."""
        try:
            await self._own()
            await self._left_over()
            if self._failures:
                log.info("the audit reaches its bucket again")
            self._failures = 0
        except (ObjectError, OSError) as error:
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 16))
            self._failures += 1
            self._next_try = time.monotonic() + pause
            facts = {"reason": str(error), "failures": self._failures, "again_s": pause}
            log.warning("the audit cannot be brought to its bucket", extra=facts)

    async def _own(self) -> None:
        while path := self._spool.next():
            size = await self._bring(path)
            self._spool.brought(path, size)

    async def _left_over(self) -> None:
        if not self._spool.chain:
            return
        with left_over(self._spool.folder, self._spool.chain) as found:
            for path in found:
                await self._bring(path)
                path.unlink(missing_ok=True)

    async def _bring(self, path: Path) -> int:
        """Write a window as an object; how many bytes the window has."""
        try:
            window = await in_thread(path.read_bytes)
        except FileNotFoundError:  # somebody has removed it; `verify` finds the gap
            log.error("a window of the audit was removed", extra={"file": path.name})  # noqa: TRY400
            return 0
        whole = window[: window.rfind(b"\n") + 1]  # the answer to the rest was never sent
        if whole:
            await self._write(whole)
        return len(window)

    async def _write(self, data: bytes) -> None:
        uri = self._base + name_of(data)
        try:
            await self._put(uri, data)
        except ChangedError:
            with suppress(RefusedError):
                found = await self._store.read(uri, len(data), lambda _: None)
                if found.data == data:  # a try before, whose answer was lost
                    return
            log.error("another window is where one of the audit belongs", extra={"uri": uri})  # noqa: TRY400
            await self._put(f"{uri.removesuffix('.jsonl')}-again-{time.time_ns()}.jsonl", data)

    async def _put(self, uri: str, data: bytes) -> None:
        await self._store.write(
            uri, data, media_type=_MEDIA_TYPE, metadata={}, if_generation_match=0
        )


def name_of(data: bytes) -> str:
    """The name of the object of some lines, which are whole."""
    lines = data.splitlines()
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    day, clock = first["at"][:19].split("T")
    return (
        f"{day}/{clock.replace(':', '')}-{first['chain']}-{first['seq']:010d}"
        f"-{last['seq']:010d}-{last['mac'][:HEX]}.jsonl"
    )


async def heads(store: BucketStore, base: str) -> list[ChainHead]:
    """How far the chains are that were written to last.

    Raises:
        ObjectError: the bucket cannot be asked.
    """
    for back in _BACK:
        start = f"{datetime.now(UTC) - back:%Y-%m-%d/%H%M%S}" if back else ""
        latest: dict[str, ChainHead] = {}
        for uri in await store.names(base, start):
            if match := _NAME.fullmatch(uri):
                chain, _, last, mac = match.groups()
                before = latest.pop(chain, None)
                head = ChainHead(chain, int(last), mac)
                latest[chain] = max(head, before or head, key=lambda each: each.seq)
        if latest:
            return list(latest.values())[-_MOST:]
    return []
