"""One request and its answer as a plan: what to send and how long to wait, without any socket.

A plan is a generator. It yields `Send` and gets an `Answer` or a `Lost` for it, and yields `Pause`
and gets nothing. Who runs it, with threads or with asyncio, decides nothing.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from ember_client.errors import Problem, UnexpectedAnswer, Unreachable
from ember_client.problems import KINDS

T = TypeVar("T")

_PROBLEM = "application/problem+json"
_FIRST_S, _LONGEST_S = 0.25, 5.0
_MOST_LOST = 5
_HELD = b"activator request timeout"  # of Knative, which has not passed the request on


@dataclass(frozen=True, slots=True)
class Call:
    """A request.

    Attributes:
        method: of HTTP.
        path: below the server's address.
        headers: by name.
        params: of the query.
        fields: of a form, by name.
        files: of a form: for each its field, its name and what is in it.
        json: a body that is no form.
        repeatable: whether sending it twice does no more than sending it once.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    files: tuple[tuple[str, str, bytes], ...] = ()
    json: Mapping[str, Any] | None = None
    repeatable: bool = True


@dataclass(frozen=True, slots=True)
class Send:
    """A step: send the call, and wait so many seconds at most for anything to come."""

    call: Call
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """A step: wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What came: the status, the headers by their names in lower case, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """Of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which to come again, where the answer says that."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdecimal() else None

    @property
    def is_problem(self) -> bool:
        """Whether Ember itself says that it will not or cannot."""
        return self.media_type == _PROBLEM


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing came; `sent` is whether the server can have seen the request."""

    error: Exception
    sent: bool


Plan: TypeAlias = Generator[Send | Pause, Answer | Lost | None, T]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may take in all: its tries and the pauses between them.

    Attributes:
        total_s: seconds after which nothing is tried or waited for any more.
        clock: seconds, which only grow.
        chance: from 0 to 1; spreads pauses.
    """

    total_s: float = 120.0
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def pause_s(self, outcome: Answer | Lost, tries: int, *, repeatable: bool) -> float | None:
        """How long to wait before the next try.

        `Retry-After` is obeyed as it is: Ember keeps a place for whoever comes at that moment.
        What is not `repeatable` is sent again only if nothing can have been done for it.

        Args:
            outcome: of the last try.
            tries: how many there were.
            repeatable: as in `Call`.

        Returns:
            Seconds; None where the outcome is final.
        """
        growing = min(_FIRST_S * 2 ** (tries - 1), _LONGEST_S) * (0.5 + self.chance() / 2)
        if isinstance(outcome, Lost):
            again = (repeatable or not outcome.sent) and tries <= _MOST_LOST
        elif outcome.status in {429, 503}:
            if (asked := outcome.retry_after_s) is not None:
                return max(asked, _FIRST_S)
            again = outcome.status == 503 and not outcome.is_problem
        else:
            again = outcome.status in {502, 504} and not outcome.is_problem
            again = again and (repeatable or outcome.body.startswith(_HELD))
        return growing if again else None


def exchange(call: Call, patience: Patience) -> Plan[Answer]:
    """Send a call until it has a final answer, or patience ends.

    Raises:
        Problem: the answer is one; its class is that of the code.
        UnexpectedAnswer: the answer is no success, and no problem.
        Unreachable: no answer came.
    """
    end = patience.clock() + patience.total_s
    tries = 0
    while True:
        tries += 1
        outcome = yield Send(call, max(end - patience.clock(), _FIRST_S))
        if outcome is None:
            raise RuntimeError("a step that sends has an outcome")
        pause_s = patience.pause_s(outcome, tries, repeatable=call.repeatable)
        if pause_s is None or patience.clock() + pause_s >= end:
            break
        yield Pause(pause_s)
    if isinstance(outcome, Lost):
        raise Unreachable(f"no answer to {call.method} {call.path}: {outcome.error!r}") from (
            outcome.error
        )
    if outcome.status >= 300:
        raise _error(outcome)
    return outcome


def _error(answer: Answer) -> Problem | UnexpectedAnswer:
    try:
        members = json.loads(answer.body) if answer.is_problem else {}
        return KINDS.get(members["code"], Problem)(members, answer.retry_after_s)
    except (ValueError, KeyError, TypeError):
        return UnexpectedAnswer(answer.status, answer.body)
