"""Logs: one JSON object a line for machines, one readable line for people.

Any module logs with the standard library and puts facts into `extra`. Nothing that shows a person
(image bytes, file names of uploads, addresses of clients) belongs into a log.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

from function.telemetry import trace_context

if TYPE_CHECKING:
    from collections.abc import Mapping

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The request that the running task works for; it is part of every line that the task logs, and so
is its trace (see `trace_context`)."""


def setup(format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:  # noqa: A002
    """Send all logs, also those of libraries and Python's warnings, to one place in one format.

    Args:
        format: "json", "text", or "auto": text when the stream is a terminal.
        level: the least important level that is written.
        stream: where to; None for standard error.
    """
    # What no line shows need not be found out for each of them (logging's own advice).
    logging._srcfile = None  # noqa: SLF001
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    stream = stream or sys.stderr
    terminal = stream.isatty()
    handler = logging.StreamHandler(stream)
    if format == "json" or (format == "auto" and not terminal):
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(Readable(colour=terminal and not os.environ.get("NO_COLOR")))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(capture=True)


class JsonLines(logging.Formatter):
    """One event as one line of JSON; a traceback is the field `error`."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        """Write the event; what it says by itself cannot be replaced by a field of `extra`."""
        event: dict[str, Any] = {
            "time": self._time(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        event |= _context()
        if record.exc_info:
            event["error"] = self.formatException(record.exc_info)
        for name, value in _extra(record).items():
            event.setdefault(name, value)
        return _JSON.encode(event)

    def _time(self, moment: float) -> str:
        """A moment after RFC 3339; the seconds are written once for all lines of a second."""
        second, written = self._second
        ms = int(moment * 1e3)
        if ms // 1000 != second:
            second = ms // 1000
            written = datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
            self._second = second, written
        return f"{written}.{ms % 1000:03d}Z"


class Readable(logging.Formatter):
    """One event as `12:30:05.120 info  message  key=value`; a traceback follows below."""

    _COLOURS: Mapping[int, int] = {
        logging.DEBUG: 2,
        logging.WARNING: 33,
        logging.ERROR: 31,
        logging.CRITICAL: 31,
    }

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Write the event; control characters are escaped, so that it stays one line."""
        level = self._paint(f"{record.levelname.lower():<7}", self._COLOURS.get(record.levelno, 36))
        time = self._paint(_moment(record).astimezone().strftime("%H:%M:%S.%f")[:-3], 2)
        facts = _extra(record)
        facts |= _context()
        rest = " ".join(f"{key}={_plain(str(value))}" for key, value in facts.items())
        line = f"{time} {level} {_plain(record.getMessage())}"
        line += f"  {self._paint(rest, 2)}" if rest else ""
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def _paint(self, words: str, code: int) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if self._colour else words


_JSON = json.JSONEncoder(default=str)
_FIRST = len(logging.makeLogRecord({}).__dict__)
_OWN = {*logging.makeLogRecord({}).__dict__, "message", "asctime"}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that the caller put into `extra`."""
    added = islice(record.__dict__.items(), _FIRST, None)  # a record's own fields come first
    return {key: value for key, value in added if key not in _OWN}


def _context() -> dict[str, str]:
    """The ids of the request and the trace that the running task works for."""
    context = trace_context.current.get()
    found = {"request_id": request_id.get(), "trace_id": context.id if context else None}
    return {name: value for name, value in found.items() if value}


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _plain(words: str) -> str:
    """Text without control characters, which could forge lines or paint a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
