"""What is heavy to import: by one thread, in one order, while the port answers already.

The runtime comes first, as models can be loaded and run while the rest is imported. One thread
imports all of it, as numpy breaks when two modules import it in two threads.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from warmup.timeline import Timeline

PARTS = {
    "runtime": "function.runtime.backends.optimised",
    "http": "function.process.wiring.server",
    "work": "function.service.work",
    "video": "function.video.clip",
    "otlp": "function.telemetry.otlp",
}


class Imports:
    """Imports each part once.

    Args:
        timeline: gets a span for each part.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._thread = ThreadPoolExecutor(1, "import")
        self._jobs: dict[str, Future[None]] = {}

    def begin(self, *parts: str) -> None:
        """Import these parts of `PARTS`, one after the other, where that has not begun."""
        for part in parts:
            if part not in self._jobs:
                self._jobs[part] = self._thread.submit(self._import, part)

    async def have(self, part: str) -> None:
        """Wait for a part, and begin with it where that is still to be done.

        Raises:
            Exception: what importing raised; the next call tries again.
        """
        self.begin(part)
        try:
            await asyncio.wrap_future(self._jobs[part])
        except Exception:
            self._jobs.pop(part, None)
            raise

    def close(self) -> None:
        """Begin with nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _import(self, part: str) -> None:
        with self._timeline.span(f"import {part}"), without_certificates():
            import_module(PARTS[part])


@contextmanager
def without_certificates() -> Iterator[None]:
    """Let this thread make TLS contexts that trust nobody.

    aiohttp makes two for its client when it is imported, and reading all root certificates for them
    takes a third of its import. The server needs neither, and clients in Ember bring their own.
    """
    original, thread = ssl.SSLContext.load_default_certs, threading.get_ident()

    def load(context: ssl.SSLContext, *args: Any) -> None:
        if threading.get_ident() != thread:
            original(context, *args)

    ssl.SSLContext.load_default_certs = load  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        ssl.SSLContext.load_default_certs = original  # type: ignore[method-assign]
