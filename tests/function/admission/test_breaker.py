"""When a service that fails is left alone, and when it is tried again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from function.admission.breaker import Breaker


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def opened():
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(3):
        breaker.failed(breaker.attempt())
    return breaker, clock


def test_it_opens_after_three_failures_in_a_row():
    breaker, _ = opened()
    assert breaker.open
    assert breaker.attempt() is None


def test_a_success_in_between_counts_anew():
    breaker = Breaker(Clock())
    for _ in range(5):
        breaker.failed(breaker.attempt())
        breaker.failed(breaker.attempt())
        breaker.succeeded()
    assert not breaker.open


def test_after_the_pause_one_attempt_is_let_through_and_decides():
    breaker, clock = opened()
    clock.now = 0.5
    attempts = [breaker.attempt() for _ in range(5)]
    assert [attempt is not None for attempt in attempts] == [True] + [False] * 4
    breaker.succeeded()
    assert all(breaker.attempt() is not None for _ in range(5))


def test_pauses_become_longer_and_end_at_fifteen_seconds():
    breaker, clock = opened()
    pauses = []
    for _ in range(8):
        began = clock.now
        while (attempt := breaker.attempt()) is None:
            clock.now += 0.25
        pauses.append(clock.now - began)
        breaker.failed(attempt)
    assert pauses == [0.5, 1, 2, 4, 8, 15, 15, 15]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 5))))
def test_a_service_that_is_down_is_asked_rarely_and_one_that_is_back_is_found(steps):
    breaker, clock = opened()
    asked = 0
    for _, pause in steps:
        clock.now += pause
        if (attempt := breaker.attempt()) is not None:
            asked += 1
            breaker.failed(attempt)
    assert asked <= 2 * clock.now + 1
    clock.now += 15
    assert breaker.attempt() is not None


def test_attempts_at_the_same_time_fail_once():
    breaker = Breaker(Clock())
    for together in (100, 100):
        for attempt in [breaker.attempt() for _ in range(together)]:
            breaker.failed(attempt)
        assert not breaker.open
    breaker.failed(breaker.attempt())
    assert breaker.open


def test_what_was_under_way_when_it_opened_makes_no_pause_longer():
    clock = Clock()
    breaker = Breaker(clock)
    under_way = [breaker.attempt() for _ in range(100)]
    for _ in range(3):
        breaker.failed(breaker.attempt())
    for attempt in under_way:
        breaker.failed(attempt)
    clock.now = 0.5
    assert breaker.attempt() is not None


def test_an_answer_to_what_was_asked_before_shows_that_it_is_back():
    breaker, _ = opened()
    breaker.succeeded()
    assert breaker.attempt() is not None
