"""Why and how fast the process is to end."""

from __future__ import annotations

import asyncio
import logging
import signal

from function.exits import Exit
from warmup.phase import Phase

log = logging.getLogger("ember.server")


class StopRequest:
    """Whether the process is to end, and with which exit code.

    Someone who presses Ctrl-C has no load balancer, so SIGINT needs no grace; a second signal of
    either kind ends it.

    Attributes:
        asked: is set when the process is to end.
        at_once: is set when it is to end without waiting for requests that may still come.
        code: the exit code.
    """

    def __init__(self) -> None:
        self.asked, self.at_once = asyncio.Event(), asyncio.Event()
        self.code = 0
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def on_phase(self, phase: Phase) -> None:
        """End a replica that has failed; the platform starts another."""
        if phase is Phase.FAILED:
            self._because(Exit.UNAVAILABLE)

    def on_memory(self) -> None:
        """End one that grows too large, before the kernel kills it in the middle of a request."""
        self._because(Exit.AGAIN)

    def _because(self, code: Exit) -> None:
        if not self.asked.is_set():
            self.code = code
            self.asked.set()

    def _on_signal(self, number: signal.Signals) -> None:
        log.info("stopping", extra={"signal": number.name})
        if self.asked.is_set() or number is signal.SIGINT:
            self.at_once.set()
        self.asked.set()
