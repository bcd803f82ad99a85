"""Whether there is room for one more request; else 503 `overloaded`, with `Retry-After`.

What is bounded is the number of requests that wait for a place, and the bytes of all bodies that
are being received or wait. Who may have a place decides the service.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from function.service import Service
    from function.trace import Trace

_RECENT = 32


class Admission:
    """Lets requests in.

    Args:
        service: tells how many requests wait.
        queue_limit: how many may.
        bodies_bytes: how much the bodies of all requests together may have.
    """

    def __init__(self, service: Service, *, queue_limit: int, bodies_bytes: int) -> None:
        self._service = service
        self._queue_limit = queue_limit
        self._bodies_bytes = bodies_bytes
        self._held = 0
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def check(self) -> None:
        """See that another request may wait.

        Raises:
            Problem: `overloaded`.
        """
        if (waiting := self._service.waiting) >= self._queue_limit:
            raise self._overloaded(
                f"{waiting} requests are waiting already.",
                limit=self._queue_limit,
                setting="EMBER_QUEUE_LIMIT",
            )

    @contextmanager
    def turn(self, trace: Trace) -> Iterator[None]:
        """Let the body, a call of the service, wait for a place; remember how long it held it.

        Raises:
            Problem: `overloaded`.
        """
        self.check()
        began = time.perf_counter()
        yield
        totals = trace.totals()
        waited_ms = totals.get("queue", 0.0) + totals.get("load", 0.0)
        self._recent.append(time.perf_counter() - began - waited_ms / 1e3)

    @contextmanager
    def body(self) -> Iterator[Callable[[int], None]]:
        """Give a function that takes so many more bytes for one request's body.

        All are given back at the end. What is given raises `Problem` `overloaded`.
        """
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            if self._held + size > self._bodies_bytes:
                raise self._overloaded(
                    "The bodies of the requests at hand leave no room for another.",
                    limit=self._bodies_bytes,
                    setting="EMBER_MAX_BODIES_BYTES",
                )
            self._held += size
            taken += size

        try:
            yield take
        finally:
            self._held -= taken

    def _overloaded(self, detail: str, *, limit: int, setting: str) -> Problem:
        """The problem; the time until all that wait have had their turn, as far as is known."""
        service = self._service
        turns = (service.waiting + 1) / service.places
        wait_s = statistics.median(self._recent or [1.0]) * turns
        return Problem(
            "overloaded",
            detail,
            headers={hdrs.RETRY_AFTER: str(max(1, math.ceil(wait_s)))},
            limit=limit,
            setting=setting,
        )
