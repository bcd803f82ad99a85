"""What `ember ping` found out, as one value: whether it is well, and if not, what is wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from keepalive.exchange import Unreachable
from keepalive.pinger import ping, swap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keepalive.pinger.ping import Readiness
    from keepalive.pinger.swap import PingSwap


class PingOutcome(StrEnum):
    """How it is."""

    WELL = "well"
    UNAVAILABLE = "unavailable"
    BUSY = "busy"
    SLOW = "slow"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class PingResult:
    """The result of one check.

    Attributes:
        url: where readiness was asked.
        outcome: how it is.
        reason: why it is not well, in words.
        answer: what was said of readiness, if anything.
        swapped: the tiny swap, if there was one.
    """

    url: str
    outcome: PingOutcome
    reason: str | None = None
    answer: Readiness | None = None
    swapped: PingSwap | None = None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"outcome": str(self.outcome), **asdict(self)}


def check(
    url: str,
    *,
    timeout_s: float = 5.0,
    wait_s: float = 0.0,
    swapping: str | None = None,
    most_s: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> PingResult:
    """Ask for readiness, then for a swap.

    Args:
        url: where to ask for readiness.
        timeout_s: how long to wait for an answer.
        wait_s: how long the server may take to become ready.
        swapping: where to ask for a tiny swap; None asks for none.
        most_s: the most seconds that the swap, or without one the answer, may take.
        headers: further request headers.
    """
    answer = swapped = None
    try:
        answer = ping.wait(lambda most: ping.ping(url, most, headers), timeout_s, wait_s)
        if not answer.ready:
            waiting = f"waiting for {answer.waiting_for}" if answer.waiting_for else "not ready"
            return PingResult(url, PingOutcome.UNAVAILABLE, waiting, answer)
        if swapping:
            swapped = swap.swap(swapping, timeout_s, headers)
    except Unreachable as error:
        return PingResult(url, PingOutcome.UNAVAILABLE, str(error), answer)
    except swap.SwapBusy as error:
        return PingResult(url, PingOutcome.BUSY, str(error), answer)
    except swap.SwapWrong as error:
        return PingResult(url, PingOutcome.WRONG, str(error), answer)
    took_s = (swapped or answer).latency_s
    if most_s is not None and took_s > most_s:
        what = "the swap" if swapped else "the answer"
        reason = f"{what} took {took_s:.3f} s; at most {most_s:g} are allowed"
        return PingResult(url, PingOutcome.SLOW, reason, answer, swapped)
    return PingResult(url, PingOutcome.WELL, None, answer, swapped)
