"""How a request ended: served, refused, failed, wrong, or left by its client.

Each is counted by itself, as one would hide another: a refusal takes milliseconds, so that among
many of them slow swaps would look quick; and a replica that fails at once has little load.
"""

from __future__ import annotations

from function.documented_enum import DocumentedEnum

CLIENT_GONE = 499
"""The status under which a request is counted whose client went away (nginx's custom)."""


class Ending(DocumentedEnum):
    """How a request ended."""

    SERVED = "served", "it was answered as asked"
    REFUSED = "refused", "there was no room for it, or no time (`overloaded`)"
    FAILED = "failed", "any other 5xx, a passed deadline too"
    WRONG = "wrong", "4xx: the request, or what its caller may have"
    LEFT = "left", "the client went away"


def ending(status: int, code: str | None) -> Ending:
    """How a request ended that was answered so.

    Args:
        status: of the answer, or `CLIENT_GONE`.
        code: of the problem, if the answer is one.
    """
    if status == CLIENT_GONE:
        return Ending.LEFT
    if code == "overloaded":
        return Ending.REFUSED
    if status >= 500:
        return Ending.FAILED
    return Ending.WRONG if status >= 400 else Ending.SERVED
