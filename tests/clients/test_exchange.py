"""When a call is sent again, and when it is given up: by the answers alone, without a socket."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from ember_client import problems
from ember_client.errors import Problem, UnexpectedAnswer, Unreachable
from ember_client.exchange import Answer, Call, Lost, Patience, Pause, Send, exchange

GET = Call("GET", "/v1/jobs")
POST = Call("POST", "/v1/swap", repeatable=False)
GOOD = Answer(200, {}, b"{}")
GONE = ConnectionResetError()
BUSY = {"code": "overloaded", "status": 503, "detail": "It is.", "request_id": "a", "hint": "Wait."}


@dataclass
class Clock:
    """Seconds that pass when somebody waits."""

    now: float = 0.0

    def __call__(self):
        return self.now


def problem(status, code, **headers):
    body = json.dumps(BUSY | {"code": code, "status": status}).encode()
    return Answer(status, {"content-type": "application/problem+json"} | headers, body)


def run(call, *outcomes, total_s=100.0, took_s=0.0):
    """The result of a call and the pauses before it; each try has an outcome, the last for ever."""
    clock, pauses, todo = Clock(), [], list(outcomes)
    plan = exchange(call, Patience(total_s, clock, lambda: 1.0))
    answer = None
    try:
        while True:
            step = plan.send(answer)
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                clock.now += step.seconds
                answer = None
            else:
                assert isinstance(step, Send)
                assert step.timeout_s <= total_s
                clock.now += took_s
                answer = todo.pop(0) if len(todo) > 1 else todo[0]
    except StopIteration as done:
        return done.value, pauses
    except Exception as error:
        return error, pauses


@pytest.mark.parametrize("call", [GET, POST])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed_to_the_second(call, status):
    asked = problem(status, "overloaded", **{"retry-after": "7"})
    assert run(call, asked, asked, GOOD) == (GOOD, [7.0, 7.0])


def test_a_retry_after_past_the_end_of_patience_is_told_at_once():
    raised, pauses = run(POST, problem(429, "quota_exhausted", **{"retry-after": "3600"}))
    assert isinstance(raised, problems.QuotaExhausted)
    assert (raised.retry_after_s, pauses) == (3600.0, [])


def test_without_a_word_when_to_come_a_refusal_is_final():
    raised, pauses = run(POST, problem(429, "too_many"))
    assert (type(raised), pauses) == (problems.TooMany, [])


def test_all_tries_together_take_no_longer_than_patience():
    raised, pauses = run(GET, problem(503, "not_ready", **{"retry-after": "1"}), took_s=2.0)
    assert isinstance(raised, problems.NotReady)
    assert 90 <= sum(pauses) + 2.0 * (len(pauses) + 1) <= 102


@pytest.mark.parametrize(
    ("outcome", "again"),
    [
        (Lost(GONE, sent=False), True),  # nobody has seen it
        (Lost(GONE, sent=True), False),
        (Answer(503, {}, b"no healthy upstream"), True),  # a proxy that has nobody to ask
        (
            Answer(504, {}, b"activator request timeout"),
            True,
        ),  # held by Knative during a cold start
        (Answer(504, {}, b"request timeout"), False),
        (Answer(502, {}, b"Bad Gateway"), False),
        (problem(504, "deadline_exceeded"), False),
        (problem(500, "internal"), False),
        (problem(422, "no_face"), False),
    ],
)
def test_a_swap_is_sent_again_only_when_nothing_can_have_been_done(outcome, again):
    result, pauses = run(POST, outcome, GOOD)
    assert (result == GOOD, len(pauses)) == (again, int(again))


@pytest.mark.parametrize(
    "outcome", [Lost(GONE, sent=True), Answer(502, {}, b""), Answer(504, {}, b"request timeout")]
)
def test_what_does_no_more_when_sent_twice_is_sent_again(outcome):
    assert run(GET, outcome, outcome, GOOD) == (GOOD, [0.25, 0.5])


def test_where_nothing_listens_it_is_given_up_after_a_few_tries():
    raised, pauses = run(GET, Lost(GONE, sent=False))
    assert isinstance(raised, Unreachable)
    assert raised.__cause__ is GONE
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0]


def test_pauses_that_nobody_asked_for_are_spread():
    answer = Answer(503, {}, b"")
    low, high = (
        Patience(chance=lambda each=each: each).pause_s(answer, 3, repeatable=True)
        for each in (0.0, 1.0)
    )
    assert (low, high) == (0.5, 1.0)


def test_a_problem_of_a_newer_server_is_a_problem_all_the_same():
    raised, _ = run(GET, problem(422, "no_moustache"))
    assert type(raised) is Problem
    assert str(raised) == "no_moustache: It is. Wait. (request a)"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(301, {}, b""),
        Answer(404, {"content-type": "text/html"}, b"<p>"),
        Answer(500, {"content-type": "application/problem+json"}, b"[]"),
        Answer(500, {"content-type": "application/problem+json"}, b"{"),
    ],
)
def test_what_is_not_of_ember_is_told_as_it_came(answer):
    raised, _ = run(GET, answer)
    assert isinstance(raised, UnexpectedAnswer)
    assert (raised.status, raised.body) == (answer.status, answer.body)
