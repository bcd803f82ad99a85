"""Prometheus: what it answers to a query now, and over a range of time."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from keepalive.exchange import Unreachable, exchange
from keepalive.failure import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_POINTS = 10_000
"""Prometheus answers 11,000 points of a series at most."""
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Point:
    """One value at one time."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Prometheus:
    """Where to ask.

    Attributes:
        url: of the server, as its own pages have it; what speaks its API will do.
        headers: of requests, e.g. Authorization.
        timeout_s: how long to wait for an answer.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise Failure(
                f"{self.url!r} is no address of a Prometheus; write http://host:9090", Exit.CONFIG
            )

    def value(self, query: str) -> float | None:
        """The one value of a query now; None when there is none, or it is not a number.

        Raises:
            Failure: there is no answer, the query is wrong, or it has several values.
        """
        result = self._ask("query", {"query": query})
        if len(result) > 1:
            raise Failure(f"{query} has {len(result)} values, not one.", Exit.CONFIG)
        if not result:
            return None
        value = float(result[0]["value"][1])
        return value if math.isfinite(value) else None

    def points(
        self, query: str, begin: datetime, end: datetime, step: timedelta
    ) -> tuple[Point, ...]:
        """The values of a query in the course of time; those that are not numbers are left out.

        Args:
            query: one that has one series.
            begin: the time of the first value.
            end: no value is later.
            step: the time between values.

        Raises:
            Failure: there is no answer, the query is wrong, or it has several series.
        """
        found: list[Point] = []
        while begin <= end:
            last = min(end, begin + step * (_MOST_POINTS - 1))
            asked = {
                "query": query,
                "start": f"{begin.timestamp():.3f}",
                "end": f"{last.timestamp():.3f}",
                "step": f"{step.total_seconds():g}",
            }
            result = self._ask("query_range", asked)
            if len(result) > 1:
                raise Failure(f"{query} has {len(result)} series, not one.", Exit.CONFIG)
            for at, text in result[0]["values"] if result else ():
                if math.isfinite(value := float(text)):
                    found.append(Point(datetime.fromtimestamp(at, UTC), value))
            begin = last + step
        return tuple(found)

    def _ask(self, what: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
        url = f"{self.url.rstrip('/')}/api/v1/{what}"
        headers = {
            "User-Agent": "ember-prescale",
            "Content-Type": "application/x-www-form-urlencoded",
            **self.headers,
        }
        try:
            reply = exchange(
                url, self.timeout_s, headers, urlencode(asked).encode(), most_bytes=_MOST_BYTES
            )
        except Unreachable as error:
            raise Failure(
                f"Prometheus at {self.url} does not answer: {error}. See that the address is right"
                " and can be reached from here.",
                Exit.UNAVAILABLE,
            ) from None
        try:
            parsed = json.loads(reply.body)
            if parsed["status"] == "success":
                return list(parsed["data"]["result"])
            reason = parsed["error"]
        except (ValueError, TypeError, KeyError):
            raise Failure(
                f"{self.url} answers {reply.status}, but not as Prometheus does. Give the address"
                " that ends where /api/v1 begins.",
                Exit.UNAVAILABLE,
            ) from None
        raise Failure(f"Prometheus cannot answer {asked['query']}: {reason}.", Exit.CONFIG)
