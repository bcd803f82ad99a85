"""The progress of a prefetch as lines of JSON: one for every change of state, else one a second."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from warmup.models.progress import FetchProgress, FetchState

_EVERY_S = 1.0


class Lines:
    """Called with a progress, writes a line when it is time for one."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._last: dict[str, tuple[FetchState, float]] = {}
        self._lock = threading.Lock()

    def __call__(self, progress: FetchProgress) -> None:
        """Write a line, or not."""
        with self._lock:
            state, at = self._last.get(progress.name, (None, 0.0))
            now = time.monotonic()
            if state is not progress.state or now - at >= _EVERY_S:
                self._last[progress.name] = (progress.state, now)
                self._write(json.dumps(progress.facts()))
