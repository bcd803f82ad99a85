r"""JSON that comes from outside: read strictly, and everything that is wrong with it is one error.

Python's own reader raises other errors for what is nested too deeply, takes numbers that are none
(NaN), and lets half of a character through (`"\ud800"`), which nothing can write down again.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH = 100
"""Lists and objects in one another; whoever walks through a value needs room for each of them."""

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(
    text: bytes | bytearray,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    *,
    halves: bool = False,
) -> Any:
    """The value of a JSON text (RFC 8259) in UTF-8.

    Args:
        text: all of it.
        pairs: makes the value of an object from its members; None for a dict.
        halves: whether halves of characters are let through, for a caller that says where they are.

    Raises:
        ValueError: it is not JSON, not UTF-8, nested too deeply, or has a number or a character
            that there is not; what `pairs` raises.
    """
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=pairs, parse_constant=_none, parse_float=_finite
        )
        if not halves and _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count(b"[") + text.count(b"{") > DEPTH and _depth(value) > DEPTH:
        raise ValueError("nested too deeply")
    return value


def _depth(value: Any) -> int:
    """How many lists and objects are in one another."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [
            child for each in level for child in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        _none(digits)
    return number


def _none(name: str) -> NoReturn:
    raise ValueError(f"{name[:20]} is not a number of JSON")
