"""When degradations are taken and left, over any course of waits."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from function.admission.degradation import (
    CALM_S,
    LEAVE_PART,
    STEP_S,
    Degradation,
    DegradationLevel,
    DegradationPolicy,
    decide,
)
from function.settings import Settings
from warmup.settings.variables import variables

WAITS = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 8)), max_size=60)
ENTER_S = 2.0


def play(waits, most=3):
    """How many are taken after each (pause, wait), with the time and the wait."""
    level, now, course = DegradationLevel(), 0.0, []
    for pause, wait_s in waits:
        now += pause
        level = decide(level, now, wait_s, most=most, enter_s=ENTER_S)
        course.append((now, wait_s, level.taken))
    return course


@given(WAITS, st.integers(0, 5))
def test_there_are_never_more_degradations_than_the_operator_named(waits, most):
    assert all(0 <= taken <= most for *_, taken in play(waits, most))


@given(WAITS)
def test_degradations_are_taken_one_at_a_time_and_only_while_the_wait_is_long(waits):
    before, last = 0, -math.inf
    for now, wait_s, taken in play(waits):
        if taken > before:
            assert taken == before + 1
            assert wait_s >= ENTER_S
            assert now - last >= STEP_S
        if taken != before:
            last = now
        before = taken


@given(WAITS)
def test_a_degradation_is_left_only_after_the_wait_was_short_for_a_while(waits):
    before, calm = 0, None
    for now, wait_s, taken in play(waits):
        if wait_s > ENTER_S * LEAVE_PART:
            calm = None
        elif calm is None:
            calm = now
        if taken < before:
            assert calm is not None
            assert now - calm >= CALM_S * (before - taken) - 1e-6
        before = taken


@given(WAITS)
def test_all_are_left_after_a_short_wait_whatever_was_before(waits):
    course = play([*waits, (0, 0.0), (CALM_S * 3 + 1, 0.0)])
    assert course[-1][2] == 0


@given(st.floats(ENTER_S * LEAVE_PART + 0.01, ENTER_S - 0.01), st.integers(1, 100))
def test_a_wait_between_the_thresholds_changes_nothing(wait_s, count):
    course = play([(0, ENTER_S)] + [(5.0, wait_s)] * count)
    assert {taken for *_, taken in course} == {1}


def test_a_wait_that_swings_does_not_swing_the_policy():
    course = play([(1.0, (0.0, 3.0)[number % 2]) for number in range(100)])
    counts = [taken for *_, taken in course]
    assert sum(a != b for a, b in pairwise(counts)) == 3


def test_degradations_are_taken_in_the_order_of_the_operator():
    now = 0.0
    policy = DegradationPolicy(
        (Degradation.REFUSE_BULK, Degradation.QUICK_SEARCH), ENTER_S, lambda: now
    )
    assert policy.update(1.0) == ()
    assert policy.update(2.0) == (Degradation.REFUSE_BULK,)
    now = 1.0
    assert policy.update(2.0) == (Degradation.REFUSE_BULK, Degradation.QUICK_SEARCH)


def test_without_any_nothing_is_degraded():
    assert DegradationPolicy((), ENTER_S).update(1000.0) == ()


def test_the_setting_takes_every_degradation_and_no_other():
    (declared,) = (each for each in variables(Settings) if each.field == "degrade")
    assert declared.reader.read(",".join(Degradation)) == tuple(map(str, Degradation))
    assert all(each in declared.reader.allowed for each in Degradation)
