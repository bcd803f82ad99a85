"""Content negotiation: which of the possible answers a client wants (RFC 9110, section 12.5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import hdrs

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aiohttp.web import Request

_RANGE = re.compile(r"([!#$%&'*+.^_`|~0-9a-z-]+)/([!#$%&'*+.^_`|~0-9a-z-]+)")

_ANY_FILE = ("application", "octet-stream")

_WEIGHT = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One media range: type and subtype may be `*`; `quality` is its weight, 0 to 1."""

    kind: str
    subtype: str
    quality: float

    def specificity(self, media_type: str) -> int:
        """0 when it does not match; 1 for `*/*`, 2 for `image/*`, 3 for `image/png`.

        `application/octet-stream` is a file of any kind: clients that are generated ask for that.
        """
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == _ANY_FILE:
            return 2 if kind in {"image", "video"} else 0
        if self.kind == "*":
            return 1
        if self.kind != kind:
            return 0
        if self.subtype == "*":
            return 2
        return 3 if self.subtype == subtype else 0


def accepted(request: Request) -> tuple[MediaRange, ...]:
    """What a request accepts."""
    return parse(request.headers.getall(hdrs.ACCEPT, []))


def parse(headers: Iterable[str]) -> tuple[MediaRange, ...]:
    """Read all `Accept` headers of a request; what is malformed is left out."""
    ranges = []
    for item in ",".join(headers).lower().split(","):
        media_range, *parameters = (part.strip() for part in item.split(";"))
        match = _RANGE.fullmatch(media_range)
        if match and (match[1] != "*" or match[2] == "*"):
            ranges.append(MediaRange(match[1], match[2], _quality(parameters)))
    return tuple(ranges)


def best(ranges: Sequence[MediaRange], offers: Sequence[str]) -> str:
    """The offer that is wanted most.

    Of equally wanted offers the one that is named more precisely wins (`application/json, */*`
    wants JSON), then the first. No range at all wants the first.

    Args:
        ranges: what the client accepts.
        offers: media types that the answer could have, the server's favourite first.

    Raises:
        Problem: `not_acceptable`, with the offers.
    """
    if not ranges:
        return offers[0]
    ranked = [(*_weight(ranges, offer), -place, offer) for place, offer in enumerate(offers)]
    quality, *_, offer = max(ranked)
    if not quality:
        raise Problem(
            "not_acceptable",
            f"None of the accepted media types is possible; {', '.join(offers)} are.",
            available=list(offers),
        )
    return offer


def _weight(ranges: Iterable[MediaRange], offer: str) -> tuple[float, int]:
    """Quality and specificity of the most specific range that matches the offer."""
    matching = [(each.specificity(offer), each.quality) for each in ranges]
    specificity, quality = max(matching)
    return (quality, specificity) if specificity else (0.0, 0)


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return min(float(value), 1.0) if _WEIGHT.fullmatch(value.strip()) else 0.0
    return 1.0
