"""The model of Knative's autoscaler against the real one, and against the documented rules.

Each worked example derives by hand, in its docstring, what must come out.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from keepalive.cli import commands
from keepalive.planning.kpa.autoscaler import Autoscaler
from keepalive.planning.kpa.command import kpa
from keepalive.planning.kpa.decider import (
    DeciderState,
    KpaObservation,
    decide,
    initial_excess_burst_capacity,
    initial_state,
)
from keepalive.planning.kpa.replay import replay
from keepalive.planning.kpa.scaler import UNKNOWN, Activation, RevisionStatus, reconcile
from keepalive.planning.kpa.settings import InvalidSetting, ScalingTarget, read
from keepalive.planning.kpa.windows import TimedBuckets, WeightedBuckets
from keepalive.planning.traces.steps import UnreadableTrace
from keepalive.times import duration

RECORDED = Path(__file__).parent / "recorded"
TRACES = {
    "a-step": (4, 6, {}),
    "b-panic": (2, 8, {"max-scale": "25"}),
    "c-delay": (6, 4, {"scale-down-delay": "60s", "min-scale": "1"}),
    "d-activation": (
        10, 5, {"activation-scale": "3", "scale-to-zero-pod-retention-period": "1m"},
    ),
    "e-rps": (
        0, 6,
        {"metric": "rps", "target": "25", "target-utilization-percentage": "80", "window": "40s"},
    ),
}  # fmt: skip


def settings(concurrency=0, **pairs):
    return read(((name.replace("_", "-"), value) for name, value in pairs.items()), concurrency)


def rows(steps, chosen, *, cold=6, until=200):
    return {row.t: row for row in replay(steps, chosen, cold, until)}


def decided(chosen, *, stable=0.0, panic=None, ready=1, now=0, memory=DeciderState()):  # noqa: B008
    panic = stable if panic is None else panic
    return decide(chosen, KpaObservation(now, stable, panic, ready), memory)


def reconciled(chosen, status=RevisionStatus(), now=0, **given):  # noqa: B008
    about = {"desired": 0, "excess_burst_capacity": -1, "ready": 1, "replicas": 1, **given}
    return reconcile(chosen, status, now, **about)


# --- the real autoscaler ------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_every_tick_is_as_the_real_autoscaler_decided(name):
    concurrency, cold, pairs = TRACES[name]
    answer = (RECORDED / f"{name}.answer.csv").read_text()
    arguments = [str(RECORDED / f"{name}.csv"), "--cold-start", str(cold)]
    arguments += ["--container-concurrency", str(concurrency)]
    arguments += ["--until", answer.splitlines()[-1].partition(",")[0]]
    for key, value in pairs.items():
        arguments += ["--set", f"{key}={value}"]
    done = CliRunner().invoke(kpa, arguments)
    assert done.output.splitlines() == answer.splitlines()


# --- worked examples: what a replica can take ---------------------------------------------------


def test_the_target_is_70_percent_of_the_container_concurrency():
    """10 requests at once × 0.7 = 7 are aimed for."""
    assert settings(10).goal == ScalingTarget(10, 7)


def test_without_a_limit_a_hundred_requests_count_as_full():
    """Concurrency 0 means no limit; then the default target 100 × 0.7 = 70."""
    assert settings(0).goal == ScalingTarget(100, 70)


def test_a_target_above_the_container_concurrency_is_cut():
    """A replica cannot work on 50 when 10 are let in; below it the target counts."""
    assert settings(10, target="50").goal == ScalingTarget(10, 7)
    assert settings(10, target="5").goal == ScalingTarget(5, 3.5)


def test_requests_per_second_are_not_cut_by_the_container_concurrency():
    """150 × 0.8 = 120 per second; ten at once says nothing about how many in a second."""
    chosen = settings(10, metric="rps", target="150", target_utilization_percentage="80")
    assert chosen.goal == ScalingTarget(150, 120)


def test_requests_per_second_have_a_target_of_their_own():
    """200 by default, × 0.7; the percentage of the concurrency's target is not theirs."""
    chosen = settings(0, metric="rps", container_concurrency_target_percentage="50")
    assert chosen.goal == ScalingTarget(200, 140)
    assert settings(0, container_concurrency_target_percentage="50").goal == ScalingTarget(100, 50)


# --- worked examples: the decision --------------------------------------------------------------


def test_one_cold_request_starts_two_replicas():
    """With one request at a time the target is 0.7, and ceil(1 ÷ 0.7) = 2."""
    assert decided(settings(1), stable=1, ready=0).desired == 2


def test_full_utilisation_starts_one_replica_for_one_cold_request():
    """ceil(1 ÷ 1.0) = 1: the way out of the trap."""
    chosen = settings(1, target_utilization_percentage="100")
    assert decided(chosen, stable=1, ready=0).desired == 1


def test_an_exact_multiple_of_the_target_does_not_round_up():
    """21 ÷ 7 is 3 and not a bit more."""
    assert decided(settings(10), stable=21, ready=3).desired == 3


def test_a_hair_above_a_multiple_rounds_up():
    """21.000001 ÷ 7 is more than 3."""
    assert decided(settings(10), stable=21.000001, ready=3).desired == 4


def test_scaling_up_is_limited_by_the_rate():
    """ready 3 × rate 1.5 = 4.5, rounded up 5, although 70 ÷ 7 = 10 are needed."""
    chosen = settings(10, max_scale_up_rate="1.5")
    assert decided(chosen, stable=70, ready=3).desired == 5


def test_a_rate_barely_above_one_still_grows():
    """ready 1 × 1.1 rounds up to 2; otherwise it would never leave 1."""
    assert decided(settings(10, max_scale_up_rate="1.1"), stable=70, ready=1).desired == 2


def test_without_replicas_the_rate_counts_from_one():
    """0 ready counts as 1: 1 × 3 = 3 of the 10 that are needed."""
    assert decided(settings(10, max_scale_up_rate="3"), stable=70, ready=0).desired == 3


def test_scaling_down_at_most_halves():
    """9 ready ÷ 2 = 4.5, rounded down 4, although there is no load."""
    assert decided(settings(10), stable=0, ready=9).desired == 4


def test_the_last_replica_may_go_at_once():
    """1 ÷ 2 rounds down to 0."""
    assert decided(settings(10), stable=0, ready=1).desired == 0


def test_scaling_down_follows_its_rate():
    """9 ready ÷ 1.2 = 7.5, rounded down 7."""
    assert decided(settings(10, max_scale_down_rate="1.2"), stable=0, ready=9).desired == 7


def test_activation_scale_is_the_least_while_there_is_load():
    """0.1 requests need 1 replica, but any load asks for 4; none asks for 0."""
    chosen = settings(10, activation_scale="4")
    assert decided(chosen, stable=0.1, ready=1).desired == 4
    assert decided(chosen, stable=0, ready=1).desired == 0


def test_activation_scale_does_not_cap():
    """35 ÷ 7 = 5 is above 4."""
    assert decided(settings(10, activation_scale="4"), stable=35, ready=4).desired == 5


# --- worked examples: panic ---------------------------------------------------------------------


def test_panic_begins_at_twice_the_ready_replicas():
    """ceil(27 ÷ 7) = 4 against 2 ready is 2.0, which is the threshold itself."""
    decision = decided(settings(10), stable=7, panic=27, ready=2)
    assert decision.state.panic_time == 0
    assert decision.desired == 4


def test_panic_does_not_begin_just_below():
    """ceil(21 ÷ 7) = 3 against 2 ready is 1.5: the stable window decides, ceil(7 ÷ 7) = 1."""
    decision = decided(settings(10), stable=7, panic=21, ready=2)
    assert decision.state.panic_time is None
    assert decision.desired == 1


def test_the_threshold_compares_whole_replicas():
    """7.1 of load is 1.01 replicas, but rounded up 2 against 1 ready: it panics."""
    assert decided(settings(10), stable=0, panic=7.1).state.panic_time == 0


def test_the_panic_threshold_can_be_set():
    """At 300 % it takes 3 times the ready: 2 do not, 3 do."""
    chosen = settings(10, panic_threshold_percentage="300")
    assert decided(chosen, panic=14, ready=1).state.panic_time is None
    assert decided(chosen, panic=15, ready=1).state.panic_time == 0


def test_a_panic_never_asks_for_fewer():
    """It wanted 8; now 2 are enough, and 8 stay."""
    decision = decided(
        settings(10), stable=14, ready=8, now=30, memory=DeciderState(10, max_panic_pods=8)
    )
    assert decision.desired == 8


def test_a_panic_takes_the_larger_of_both_windows():
    """Stable asks for ceil(63 ÷ 7) = 9, panic for 2, before 8: 9."""
    decision = decided(
        settings(10),
        stable=63,
        panic=14,
        ready=8,
        now=30,
        memory=DeciderState(10, max_panic_pods=8),
    )
    assert decision.desired == 9


def test_a_panic_ends_only_after_more_than_one_stable_window():
    """Last over the threshold at 20: at 80 exactly 60 s have passed, which is not more."""
    memory = DeciderState(20, max_panic_pods=8)
    at_80 = decided(settings(10), stable=14, ready=8, now=80, memory=memory)
    assert (at_80.desired, at_80.state.panic_time) == (8, 20)
    at_82 = decided(settings(10), stable=14, ready=8, now=82, memory=memory)
    assert (at_82.desired, at_82.state) == (4, DeciderState())


def test_each_crossing_prolongs_the_panic():
    """Over the threshold again at 50 (112 ÷ 7 = 16 of 8): it counts from 50."""
    decision = decided(
        settings(10),
        stable=14,
        panic=112,
        ready=8,
        now=50,
        memory=DeciderState(20, max_panic_pods=8),
    )
    assert decision.state == DeciderState(50, max_panic_pods=16)


def test_a_long_cold_start_keeps_it_panicking():
    """Load 14 wants ceil(14 ÷ 7) = 2. Until the second replica is ready at 40 s, 2 ÷ 1 is over the
    threshold at every tick; the last is at 38, so it calms down at the first tick after 98."""
    found = rows([(0, 14)], settings(10), cold=40, until=120)
    assert all(found[t].panicking for t in range(0, 100, 2))
    assert not found[100].panicking


def test_an_autoscaler_that_takes_over_running_replicas_panics():
    """It has no history, and must not scale down for want of it: 5 stay for a stable window. One
    replica is as after a cold start."""
    assert initial_state(100, 5) == DeciderState(100, max_panic_pods=5)
    assert initial_state(100, 1) == DeciderState()
    assert (
        decided(settings(10), stable=0, ready=5, now=110, memory=DeciderState(100, 5)).desired == 5
    )
    assert Autoscaler(settings(10), ready=5).panicking


# --- worked examples: the delay for scaling down ------------------------------------------------


def test_fewer_replicas_wait_for_the_delay():
    """30 s are 15 ticks. 5 are wanted at 0, then 1: tick 14 (28 s) still remembers the 5, tick 15
    does not."""
    chosen = settings(10, scale_down_delay="30s")
    memory = DeciderState()
    wanted = {}
    for now in range(0, 40, 2):
        decision = decided(chosen, stable=35 if now == 0 else 7, ready=2, now=now, memory=memory)
        wanted[now], memory = (
            decision.desired,
            DeciderState(delay_window=decision.state.delay_window),
        )
    assert [wanted[t] for t in (0, 2, 28, 30)] == [5, 5, 5, 1]


def test_more_replicas_do_not_wait():
    """The delay takes the largest of the last decisions, so a larger one counts at once."""
    chosen = settings(10, scale_down_delay="30s")
    first = decided(chosen, stable=7, ready=4, now=0)
    assert decided(chosen, stable=28, ready=4, now=2, memory=first.state).desired == 4


def test_the_delay_steps_down_as_decisions_leave():
    """4, 3, 2, 1 wanted in turn; each is let go one tick after the other, 10 s later."""
    chosen = settings(10, scale_down_delay="10s")
    memory, got = DeciderState(), []
    for now, load in zip(range(0, 18, 2), [28, 21, 14, 7, 7, 7, 7, 7, 7], strict=True):
        decision = decided(chosen, stable=load, ready=2, now=now, memory=memory)
        got.append(decision.desired)
        memory = DeciderState(delay_window=decision.state.delay_window)
    assert got == [4, 4, 4, 4, 4, 3, 2, 1, 1]


# --- worked examples: burst capacity and the activator ------------------------------------------


def test_excess_burst_capacity_is_what_fits_beyond_the_burst():
    """25 ready × 10 = 250, less 211 for the burst, less 30.5 in flight: 8.5, rounded down 8."""
    assert decided(settings(10), stable=30.5, ready=25).excess_burst_capacity == 8


def test_excess_burst_capacity_rounds_down_below_zero_too():
    """0 − 211 − 0.5 = −211.5 becomes −212."""
    assert decided(settings(10), stable=0, panic=0.5, ready=0).excess_burst_capacity == -212


@pytest.mark.parametrize(("burst", "excess"), [("0", 0), ("-1", -1)])
def test_the_activator_can_be_kept_out_or_in(burst, excess):
    """0 takes it out of the path whenever there are replicas, −1 keeps it in for good."""
    chosen = settings(10, target_burst_capacity=burst)
    assert initial_excess_burst_capacity(chosen) == excess
    assert decided(chosen, stable=500, ready=1).excess_burst_capacity == excess


def test_before_the_first_report_the_initial_replicas_are_counted():
    """3 initial × 10 − 211 = −181."""
    assert initial_excess_burst_capacity(settings(10, initial_scale="3")) == -181


def test_the_activator_leaves_and_comes_back_with_the_load():
    """Burst capacity 5, one replica that takes 10. Idle: 10 − 5 − 0 = 5, out. The panic window's
    average grows by 9 ÷ 6 = 1.5 a second: at 22 s it is 4.5 and 0.5 rounds down to 0, still out; at
    24 s it is 7.5, and −2.5 is below 0: in."""
    found = rows([(0, 0), (20, 9)], settings(10, target_burst_capacity="5"), until=30)
    assert [found[t].activator_in_path for t in (4, 10, 22, 24)] == [False, False, False, True]
    assert [found[t].excess_burst_capacity for t in (4, 10, 22, 24)] == [5, 5, 0, -3]


# --- worked examples: minimum, maximum and scaling to zero --------------------------------------

ACTIVE = RevisionStatus(Activation.ACTIVE, since=0, initialised=True)
INACTIVE = RevisionStatus(Activation.INACTIVE, since=100, initialised=True, proxied_since=0)


def test_minimum_and_maximum_bound_what_is_decided():
    """From 2 to 5."""
    chosen = settings(10, min_scale="2", max_scale="5")
    wanted = [reconciled(chosen, ACTIVE, desired=n, ready=2).want for n in (0, 3, 9)]
    assert wanted == [2, 3, 5]


def test_the_minimum_counts_before_anything_is_known():
    """A new revision with minimum 3 has one initial replica; the other two follow at once."""
    assert reconciled(settings(10, min_scale="3"), desired=UNKNOWN, ready=0).replicas == 3


def test_the_initial_scale_holds_until_it_was_reached_once():
    """4 are wanted although 1 is enough, until 4 were ready at 10 s; then it is ignored: at 11 s
    half of the 4, as was decided at 10 s, and at 12 s half of those 2."""
    found = rows([(0, 1)], settings(10, initial_scale="4"), cold=10, until=120)
    assert [found[t].want for t in (0, 8, 10)] == [4, 4, 4]
    assert found[8].activation == "activating"
    assert found[10].activation == "active"
    assert found[10].desired == 2
    assert (found[12].ready, found[12].want) == (2, 1)


def test_a_floor_replaces_the_minimum():
    """The pre-scaler raises the minimum of a running revision."""
    assert reconciled(settings(10, min_scale="1"), ACTIVE, desired=0, floor=6).replicas == 6
    assert reconciled(settings(10, min_scale="1"), ACTIVE, 10, desired=0, floor=0).replicas == 1


def test_too_few_for_the_minimum_is_activating():
    """Two of three are ready: it takes traffic, and is not yet what was asked for."""
    chosen = settings(10, min_scale="3")
    assert reconciled(chosen, ACTIVE, ready=2).status.activation is Activation.ACTIVATING
    assert reconciled(chosen, ACTIVE, ready=3).status.activation is Activation.ACTIVE


def test_an_active_revision_keeps_one_replica_for_a_stable_window():
    """Active since 0 s: at 59 s one stays, at 60 s none is wanted, but the replica is there."""
    chosen = settings(10)
    assert (reconciled(chosen, ACTIVE, 59).want, reconciled(chosen, ACTIVE, 59).replicas) == (1, 1)
    at_60 = reconciled(chosen, ACTIVE, 60)
    assert (at_60.want, at_60.replicas) == (0, 1)
    assert at_60.status.activation is Activation.INACTIVE


def test_the_last_replica_goes_at_once_when_the_activator_was_in_the_path():
    """Inactive since 100 s, proxied since 0 s, which is longer than the grace period."""
    assert reconciled(settings(10), INACTIVE, 101).replicas == 0


def test_the_last_replica_waits_until_the_activator_has_been_in_the_path():
    """The activator came in when it became inactive, at 100 s: 30 s of grace end at 130 s."""
    status = RevisionStatus(Activation.INACTIVE, since=100, initialised=True, proxied_since=100)
    replicas = [reconciled(settings(10), status, now).replicas for now in (101, 129, 130)]
    assert replicas == [1, 1, 0]


def test_retention_keeps_the_last_replica():
    """Two minutes from 100 s on, however long the activator has been in the path."""
    chosen = settings(10, scale_to_zero_pod_retention_period="2m")
    replicas = [reconciled(chosen, INACTIVE, now).replicas for now in (130, 219, 220)]
    assert replicas == [1, 1, 0]


def test_load_during_retention_meets_the_retained_replica():
    """One replica is kept from 96 s on; the load at 150 s finds it ready: no cold start."""
    chosen = settings(10, scale_to_zero_pod_retention_period="2m")
    found = rows([(0, 1), (30, 0), (150, 1)], chosen, until=170)
    assert (found[140].want, found[140].replicas, found[140].activation) == (0, 1, "inactive")
    assert (found[150].want, found[150].ready, found[150].activation) == (1, 1, "active")


def test_scaling_to_zero_can_be_forbidden():
    """One replica stays for good."""
    found = rows([(0, 0)], settings(10, enable_scale_to_zero="false"), until=400)
    assert found[400].replicas == 1


def test_a_revision_that_never_becomes_ready_is_given_up():
    """After the progress deadline of 20 s and 30 s more, without load."""
    found = rows([(0, 0)], settings(10, progress_deadline="20s"), cold=1000, until=60)
    assert (found[48].want, found[48].replicas) == (UNKNOWN, 1)
    assert (found[50].want, found[50].replicas, found[50].activation) == (0, 0, "inactive")


def test_a_revision_may_start_with_no_replica():
    """It is inactive, nothing is known, and the first load starts what it needs."""
    chosen = settings(10, initial_scale="0", allow_zero_initial_scale="true")
    found = rows([(20, 8)], chosen, until=40)
    assert (found[10].replicas, found[10].want, found[10].activation) == (0, UNKNOWN, "inactive")
    assert found[10].activator_in_path
    assert (found[20].want, found[26].ready) == (2, 2)


def test_load_that_meets_no_replica_does_not_wait_for_the_tick():
    """Down to zero, then load at 301 s: the activator reports it, the replica is wanted at 301 s
    and ready at 306 s. Had it waited for the tick at 302 s, it would be ready at 307 s."""
    found = rows([(0, 1), (10, 0), (301, 1)], settings(10), cold=5, until=310)
    assert found[300].replicas == 0
    assert (found[302].replicas, found[304].ready, found[306].ready) == (1, 0, 1)


# --- windows ------------------------------------------------------------------------------------


def test_a_young_window_is_divided_by_its_age():
    """Reports 1 and 2 in two seconds: 1.5, and not 3 ÷ 60."""
    window = TimedBuckets(60)
    window.record(10, 1)
    window.record(11, 2)
    assert window.average(11) == 1.5


def test_a_full_window_forgets_the_oldest_second():
    """Seconds 0 to 6 hold 0 to 6; the last six make 21 ÷ 6."""
    window = TimedBuckets(6)
    for second in range(7):
        window.record(second, second)
    assert window.average(6) == 3.5


def test_seconds_without_a_report_count_as_nothing():
    """4 at 0 s and 2 at 3 s: (4 + 0 + 0 + 2) ÷ 4."""
    window = TimedBuckets(6)
    window.record(0, 4)
    window.record(3, 2)
    assert window.average(3) == 1.5


def test_missing_the_newest_seconds_shortens_the_window():
    """Six reports of 6 until 5 s; at 7 s two are out, and the four left are divided by four."""
    window = TimedBuckets(6)
    for second in range(6):
        window.record(second, 6)
    assert window.average(7) == 6


def test_a_report_after_a_silent_window_starts_afresh():
    """9 until 5 s, then 3 at 11 s: nothing of before is left, and its age is one second."""
    window = TimedBuckets(6)
    for second in range(6):
        window.record(second, 9)
    assert (window.average(11), window.empty(11), window.empty(12)) == (0, False, True)
    window.record(11, 3)
    assert window.average(11) == 3


def test_two_reports_in_one_second_add_up():
    window = TimedBuckets(6)
    window.record(0, 1)
    window.record(0, 2)
    assert window.average(0) == 3


def test_averages_round_down_to_millionths():
    """1 ÷ 3, and a third less than 4.2 that must not become more than 4.2."""
    window = TimedBuckets(6)
    for second, value in enumerate((1, 0, 0)):
        window.record(second, value)
    assert window.average(2) == 0.333333


def test_newer_seconds_weigh_more_in_an_exponential_window():
    """A minute: 1 − 0.0001^(1 ÷ 60) = 0.14 is below a fifth, so the newest weighs 0.2, the one
    before 0.2 × 0.8: 10 × 0.2 + 5 × 0.16 = 2.8."""
    window = WeightedBuckets(60)
    window.record(0, 5)
    window.record(1, 10)
    assert window.average(1) == pytest.approx(2.8)
    assert window.average(2) == pytest.approx(2.24)


def test_a_short_exponential_window_is_almost_its_newest_second():
    """Six seconds: 1 − 0.0001^(1 ÷ 6) = 0.784557."""
    window = WeightedBuckets(6)
    window.record(0, 1)
    assert window.average(0) == 0.784556
    assert window.average(6) == 0


def test_exponential_averaging_follows_a_step_sooner():
    """After ten of sixty seconds at 14 the plain average is 140 ÷ 60; the other 14 × (1 − 0.8^10)
    = 12.5, and so asks for 2 replicas already."""
    steps = [(0, 0), (100, 14)]
    pairs = {"panic_threshold_percentage": "1000"}
    plain = rows(steps, settings(10, **pairs), until=110)
    other = settings(10, metric_aggregation_algorithm="weighted-exponential", **pairs)
    weighted = rows(steps, other, until=110)
    assert (plain[108].desired, weighted[108].desired) == (1, 2)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=80), st.integers(1, 20))
def test_a_window_without_gaps_is_the_mean_of_its_newest_seconds(values, length):
    window = TimedBuckets(length)
    for second, value in enumerate(values):
        window.record(second, value)
    newest = values[-length:]
    assert window.average(len(values) - 1) == pytest.approx(
        sum(newest) / len(newest), rel=1e-6, abs=1e-5
    )


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.integers(0, 50))
def test_more_load_never_asks_for_fewer(one, other, ready):
    low, high = sorted((one, other))
    chosen = settings(10)
    assert (
        decided(chosen, stable=low, ready=ready).desired
        <= decided(chosen, stable=high, ready=ready).desired
    )


# --- settings and the command -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1m30s", 90), ("1h0m0s", 3600), ("500ms", 0.5), ("0", 0)]
)
def test_durations_are_read_as_kubernetes_writes_them(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "1 m", "-1s", "1d", "1m 30s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is no duration"):
        duration(text)


def test_names_of_annotations_and_of_the_config_map_are_both_read():
    chosen = read(
        [("autoscaling.knative.dev/min-scale", "2"), ("stable-window", "40s"), ("window", "50s")]
    )
    assert (chosen.min_scale, chosen.stable_window_s, chosen.panic_window_s) == (2, 50, 5)


@pytest.mark.parametrize(
    ("percent", "window", "seconds"), [("10", "60s", 6), ("10", "6s", 1), ("5", "50s", 3)]
)
def test_the_panic_window_is_whole_seconds_and_at_least_one(percent, window, seconds):
    assert settings(panic_window_percentage=percent, window=window).panic_window_s == seconds


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("min-scal=1", "There is no setting 'min-scal'; there are: activation-scale,"),
        ("min-scale=-1", "min-scale=-1 is no whole number from 0"),
        ("min-scale=abc", "min-scale=abc is no whole number from 0"),
        ("activation-scale=1", "is no whole number from 2"),
        ("window=5s", "window=5s is not from 6s to 3600s"),
        ("window=7.5s", "is not in whole seconds"),
        ("scale-down-delay=2h", "is not from 0s to 3600s"),
        ("scale-down-delay=60", "is no duration such as 90s"),
        ("target=0", "is not from 0.01"),
        ("target=many", "is no number"),
        ("target-utilization-percentage=0.7", "is not from 1 to 100"),
        ("target-burst-capacity=-2", "is not from 0, nor -1"),
        ("max-scale-down-rate=1", "is not above 1"),
        ("panic-threshold-percentage=2", "is not from 110 to 1000"),
        ("metric=cpu", "is scaled by a HorizontalPodAutoscaler"),
        ("metric=rpm", "metric=rpm is none of concurrency, rps"),
        ("enable-scale-to-zero=no", "is neither true nor false"),
        ("initial-scale=0", "initial-scale=0 needs allow-zero-initial-scale=true"),
        ("max-scale", "'max-scale' is not like max-scale=25"),
    ],
)
def test_bad_settings_say_what_is_allowed(pair, says):
    done = CliRunner().invoke(kpa, [str(RECORDED / "a-step.csv"), "--set", pair])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


def test_a_minimum_above_the_maximum_is_refused():
    with pytest.raises(InvalidSetting, match="min-scale=3 is above max-scale=2"):
        settings(min_scale="3", max_scale="2")


@pytest.mark.parametrize("concurrency", [-1, 1001])
def test_an_impossible_container_concurrency_is_refused(concurrency):
    with pytest.raises(InvalidSetting, match="is not from 0 to 1000"):
        settings(concurrency)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no line such as 60,12.5"),
        ("0,1\n10\n", "line 2: '10' is not two numbers"),
        ("0,1\n10,nan\n", "line 2"),
        ("0,-1\n", "line 1"),
        ("0,1e300\n", "line 1: '0,1e300' is not two numbers"),
        ("1e18,5\n", "line 1"),
        ("0,1\n" + "9" * 100_000 + "\n", "line 2: '" + "9" * 60 + "' is not"),
        ("0,1,2\n", "line 1"),
        ("0,1\nt,load\n", "line 2"),
        ("10,1\n5,2\n", "5 s comes after 10 s"),
        ("5,1\n5,2\n", "5 s comes after 5 s"),
    ],
)
def test_a_bad_trace_says_where(tmp_path, text, says):
    trace = tmp_path / "trace.csv"
    trace.write_text(text)
    refused = CliRunner().invoke(kpa, [str(trace)]).exception
    assert isinstance(refused, UnreadableTrace)
    assert says in str(refused)
    assert refused.exit_code == 65


def test_in_its_own_image_too_that_is_one_line_and_an_exit_code(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("soon\n")
    done = CliRunner().invoke(commands, ["kpa", str(trace)])
    assert done.exit_code == 65
    assert (
        done.stderr
        == f"Error: {trace} has no line such as 60,12.5: seconds and the load from then on.\n"
    )


def test_a_trace_may_have_names_comments_and_fractions(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("\ufefft,load\n# a comment\n0.5,1.5  # another\n\n2,1234567\n4,2.25\n")
    done = CliRunner().invoke(kpa, [str(trace), "--cold-start", "2s", "--until", "4"])
    cells = [line.split(",") for line in done.output.splitlines()[2:]]
    assert [(row[0], row[1], row[2]) for row in cells] == [
        ("0", "0", "0"), ("2", "1234567", "1"), ("4", "2.25", "1000"),
    ]  # fmt: skip


def test_the_replay_goes_on_until_the_replicas_are_gone():
    done = CliRunner().invoke(
        kpa, [str(RECORDED / "a-step.csv"), "--set", "scale-to-zero-pod-retention-period=10m"]
    )
    last = done.output.splitlines()[-1].split(",")
    assert (last[3], last[-1]) == ("0", "inactive")


def test_the_model_needs_no_numpy():
    heavy = "{'numpy', 'matplotlib'}"
    code = f"import sys, keepalive.planning.kpa.command; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rounding_never_loses_a_replica():
    """An average just below a multiple of the target must not ask for one replica too many."""
    chosen = settings(6)
    window = TimedBuckets(60)
    for second in range(120):
        window.record(second, 4.2)
    assert math.ceil(window.average(119) / chosen.goal.target) == 1
