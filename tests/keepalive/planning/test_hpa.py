"""The model of the HorizontalPodAutoscaler against worked examples of its documented rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepalive.planning.hpa import (
    SCALE_DOWN,
    SCALE_UP,
    HpaObservation,
    HpaSpec,
    HpaState,
    PolicySelect,
    PolicyUnit,
    ScalingPolicy,
    ScalingRules,
    decide,
    recommend,
)

SPEC = HpaSpec(target=0.7, max_replicas=20, min_replicas=1)


def seen(replicas, usage, *, now=0.0, **others):
    """All replicas are equally busy."""
    ready = replicas - others.get("unready", 0) - others.get("missing", 0)
    return HpaObservation(now, replicas, [usage] * ready, **others)


def run(spec, loads, *, replicas, memory=HpaState()):  # noqa: B008
    """What it decides every 15 s when the load is that many replicas' full work."""
    got = []
    for step, load in enumerate(loads):
        observed = seen(replicas, min(1.0, load / replicas), now=15.0 * step)
        decision = decide(spec, observed, memory)
        replicas, memory = decision.replicas, decision.state
        got.append(replicas)
    return got


def test_it_scales_by_the_ratio_of_metric_and_target():
    """4 replicas at 0.9 of 0.7: 4 × 0.9 ÷ 0.7 = 5.14, rounded up 6."""
    assert recommend(SPEC, seen(4, 0.9)) == 6


def test_it_scales_down_by_the_same_rule():
    """10 × 0.21 ÷ 0.7 = 3."""
    assert recommend(SPEC, seen(10, 0.21)) == 3


@pytest.mark.parametrize("usage", [0.64, 0.7, 0.769])
def test_within_the_tolerance_nothing_happens(usage):
    """0.7 ± 10 % is 0.63 to 0.77."""
    assert recommend(SPEC, seen(10, usage)) == 10


def test_each_direction_can_have_its_own_tolerance():
    """0.72 ÷ 0.7 is 3 % too much: with a tolerance of 1 % that is 11 replicas of 10."""
    eager = replace(SPEC, scale_up=replace(SCALE_UP, tolerance=0.01))
    assert recommend(eager, seen(10, 0.72)) == 11
    assert recommend(eager, seen(10, 0.65)) == 10


def test_a_full_replica_never_looks_more_than_full():
    """One replica under ten times its load shows 1.0: 1 ÷ 0.7 rounds up to 2 and no more. It must
    climb step by step, which is why it is slow for GPUs."""
    assert recommend(SPEC, seen(1, 1.0)) == 2


def test_replicas_that_are_not_ready_hold_it_back():
    """2 ready at 1.0 and 2 starting that count as idle: (2 × 1.0) ÷ 4 ÷ 0.7 = 0.71, which turns
    round, so 4 stay."""
    assert recommend(SPEC, seen(4, 1.0, unready=2)) == 4


def test_enough_load_scales_up_beside_replicas_that_are_not_ready():
    """7 ready at 1.0, 1 starting: 7 ÷ 8 ÷ 0.7 = 1.25, × 8 = 10."""
    assert recommend(SPEC, seen(8, 1.0, unready=1)) == 10


def test_replicas_that_are_not_ready_do_not_count_when_scaling_down():
    """4 ready at 0.35 need 2, whatever the fifth does."""
    assert recommend(SPEC, seen(5, 0.35, unready=1)) == 2


def test_missing_figures_count_as_idle_when_scaling_up():
    """3 at 1.0 and one unknown: 3 ÷ 4 ÷ 0.7 = 1.07 is within the tolerance; without it 5."""
    assert recommend(SPEC, seen(4, 1.0, missing=1)) == 4


def test_missing_figures_count_as_just_right_when_scaling_down():
    """3 at 0.2 and one at 0.7: 1.3 ÷ 4 ÷ 0.7 = 0.46, × 4 = 1.86, rounded up 2; without it 1."""
    assert recommend(SPEC, seen(4, 0.2, missing=1)) == 2


def test_without_any_figure_nothing_happens():
    assert recommend(SPEC, seen(3, 0.0, unready=3)) == 3


def test_minimum_and_maximum_hold():
    assert decide(SPEC, seen(20, 1.0), HpaState()).replicas == 20
    idle = replace(SPEC, min_replicas=2, scale_down=replace(SCALE_DOWN, stabilisation_s=0))
    assert decide(idle, seen(5, 0.0), HpaState()).replicas == 2


def test_it_brings_a_workload_into_its_bounds_first():
    assert decide(SPEC, seen(30, 0.0), HpaState()).replicas == 20
    assert decide(replace(SPEC, min_replicas=3), seen(1, 0.0), HpaState()).replicas == 3


def test_a_workload_at_zero_is_left_alone():
    assert decide(SPEC, HpaObservation(0, 0, []), HpaState()).replicas == 0


def test_scaling_up_doubles_or_adds_four_in_15_seconds():
    """With the target 0.7 a full replica asks for 1 ÷ 0.7 as many: ceil(1.43) = 2, 3, 5, 8, 12, 18.
    With the target 0.1 each asks for ten times as many, and the policies let through 1 + 4, then
    twice 5 and twice 10."""
    assert run(SPEC, [30] * 6, replicas=1) == [2, 3, 5, 8, 12, 18]
    eager = replace(SPEC, target=0.1)
    assert run(eager, [30] * 3, replicas=1) == [5, 10, 20]


def test_changes_within_the_period_count_against_a_policy():
    """At most 2 pods a minute: at 15 s and 30 s nothing more is allowed, at 60 s again 2."""
    slow = replace(
        SPEC, target=0.1, scale_up=ScalingRules(0, (ScalingPolicy(PolicyUnit.PODS, 2, 60),))
    )
    assert run(slow, [30] * 6, replicas=1) == [3, 3, 3, 3, 5, 5]


def test_the_narrower_policy_can_be_chosen():
    """4 pods or 100 % of 2: the smaller is 2 more."""
    narrow = replace(SPEC, target=0.1, scale_up=replace(SCALE_UP, select=PolicySelect.MIN))
    assert decide(narrow, seen(2, 1.0), HpaState()).replicas == 4
    assert decide(replace(SPEC, target=0.1), seen(2, 1.0), HpaState()).replicas == 6


def test_a_direction_can_be_disabled():
    still = replace(
        SPEC, scale_down=replace(SCALE_DOWN, select=PolicySelect.DISABLED, stabilisation_s=0)
    )
    assert decide(still, seen(9, 0.0), HpaState()).replicas == 9


def test_scaling_down_waits_for_five_minutes_of_lower_recommendations():
    """10 are recommended at 0 s; that counts until 285 s, and at 300 s no more."""
    got = run(SPEC, [7] + [1.4] * 21, replicas=10)
    assert got[19] == 10
    assert got[20] == 2


def test_scaling_down_by_a_percentage_rounds_down_what_stays():
    """10 % a minute of 15 leaves 13.5, which is 13; then nothing for a minute."""
    slow = replace(SPEC, scale_down=ScalingRules(0, (ScalingPolicy(PolicyUnit.PERCENT, 10, 60),)))
    assert run(slow, [0.5] * 6, replicas=15) == [13, 13, 13, 13, 11, 11]


def test_the_wider_policy_counts_when_scaling_down():
    """Of 20, 10 % leave 18 and 5 pods leave 15: 15; with Min 18."""
    rules = ScalingRules(
        0, (ScalingPolicy(PolicyUnit.PERCENT, 10, 60), ScalingPolicy(PolicyUnit.PODS, 5, 60))
    )
    wide = replace(SPEC, scale_down=rules)
    assert decide(wide, seen(20, 0.0), HpaState()).replicas == 15
    narrow = replace(SPEC, scale_down=replace(rules, select=PolicySelect.MIN))
    assert decide(narrow, seen(20, 0.0), HpaState()).replicas == 18


def test_stabilisation_upwards_takes_the_lowest_recent_recommendation():
    """A spike of one sync between quiet ones does not count within 30 s."""
    calm = replace(SPEC, scale_up=replace(SCALE_UP, stabilisation_s=30))
    assert run(calm, [1.4, 2.0, 1.4], replicas=2) == [2, 2, 2]
    assert run(SPEC, [1.4, 2.0, 1.4], replicas=2) == [2, 3, 3]


@given(st.lists(st.floats(0, 40), min_size=1, max_size=40), st.integers(1, 20), st.integers(1, 20))
def test_it_stays_within_its_bounds_and_its_policies(loads, replicas, least):
    spec = replace(SPEC, min_replicas=least)
    replicas = max(replicas, least)
    before = replicas
    for now in run(spec, loads, replicas=replicas):
        assert least <= now <= 20
        assert now <= max(before * 2, before + 4)
        before = now


@given(st.integers(1, 20), st.floats(0, 1), st.floats(0, 1))
def test_a_busier_workload_never_gets_fewer(replicas, one, other):
    low, high = sorted((one, other))
    assert recommend(SPEC, seen(replicas, low)) <= recommend(SPEC, seen(replicas, high))
