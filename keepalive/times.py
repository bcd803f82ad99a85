"""Durations as Knative writes them, and time zones by their names."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|ns|m|s)")


def duration(text: str) -> float:
    """Seconds of a duration such as `90s`, `1m30s` or `0`.

    Raises:
        ValueError: it is none.
    """
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("is no duration such as 90s, 1m30s or 0")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def zone(name: str) -> ZoneInfo:
    """A time zone by its name.

    Raises:
        ValueError: it is not known; the text says what to do.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"timezone: {name!r} is not known here; write it as in Europe/Berlin, and see that the"
            " system has time zones (package tzdata)"
        ) from None
