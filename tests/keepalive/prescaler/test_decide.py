"""Decisions: tables for what each rule means, and properties that hold whatever happens."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from keepalive.prescaler.decide import FloorMemory, FloorSamples, FloorSpec, PastNeed, decide
from keepalive.prescaler.diagnose import PoolState
from keepalive.prescaler.pool import ModelLayer, NodeLayer
from keepalive.prescaler.schedule import Batch, FloorEvent, FloorWindow, Schedule

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)
NIGHT = datetime(2026, 11, 30, 3, 0, tzinfo=BERLIN)  # a Monday
NOON = NIGHT.replace(hour=12)
IDLE = ModelLayer(ready=1)


def schedule(**changes):
    given = {
        "timezone": BERLIN,
        "lead": 12 * MINUTE,
        "floor": 1,
        "max_floor": 20,
        "windows": (FloorWindow("0 8 * * mon-fri", timedelta(hours=10.5), 4),),
    }
    return Schedule(**{**given, **changes})


def spec(*, of=None, **changes):
    return FloorSpec(**{"schedule": of or schedule(), "per_replica": 3.0, **changes})


class Pool:
    """A pool that does at once what is decided, in a time of its own."""

    def __init__(self, spec, now, floor=0, model=IDLE):
        self.spec, self.now = spec, now.astimezone(UTC)
        self.samples = FloorSamples(floor=floor, model=model)
        self.decision = None

    def see(self, **changes):
        self.samples = replace(self.samples, **changes)
        return self

    def decide(self):
        self.decision = decide(self.now, self.samples, self.spec)
        self.samples = replace(self.samples, floor=self.decision.floor, memory=self.decision.memory)
        return self.decision.floor

    def run(self, minutes):
        """The floor after each minute."""
        floors = []
        for _ in range(minutes):
            self.now += MINUTE
            floors.append(self.decide())
        return floors


class TestRising:
    def test_it_rises_at_once_to_what_the_schedule_wants(self):
        decision = decide(NOON, FloorSamples(floor=1, model=IDLE), spec())
        assert (decision.floor, decision.need) == (4, 4)
        assert decision.why == "window 0 8 * * mon-fri"

    def test_it_rises_its_lead_time_before(self):
        at = NIGHT.replace(hour=7)
        floors = {
            minute: decide(at.replace(minute=minute), FloorSamples(1, model=IDLE), spec()).floor
            for minute in (47, 48)
        }
        assert floors == {47: 1, 48: 4}

    @pytest.mark.parametrize(
        ("expected", "floor"), [(0.0, 1), (3.0, 1), (3.1, 2), (12.0, 4), (59.0, 20), (600.0, 20)]
    )
    def test_it_rises_to_the_upper_end_of_the_forecast(self, expected, floor):
        decision = decide(NIGHT, FloorSamples(0, model=IDLE, expected=expected), spec())
        assert decision.floor == floor
        assert decision.need == max(1, math.ceil(expected / 3))

    @pytest.mark.parametrize(
        ("in_flight", "slope", "floor"),
        [
            (0, 0, 1),
            (3, 0, 1),
            (4, 0, 2),
            (12, 0, 4),
            (12, -1, 4),  # a queue that shrinks is still there
            (12, 0.005, 6),  # 3.6 more within 12 minutes
            (12, 1, 8),  # however fast it grows, at most as much again is expected
            (0, 1, 1),
        ],
    )
    def test_it_rises_to_what_is_in_flight_and_soon_will_be(self, in_flight, slope, floor):
        model = ModelLayer(ready=8, in_flight=in_flight, slope=slope)
        assert decide(NIGHT, FloorSamples(0, model=model), spec()).floor == floor

    def test_too_few_replicas_get_a_quarter_more(self):
        late = ModelLayer(ready=8, in_flight=20, p95_s=2.0)
        wanted = spec(objective_s=0.8)
        decision = decide(NIGHT, FloorSamples(8, model=late), wanted)
        assert (decision.floor, decision.finding.state) == (10, PoolState.TOO_FEW)
        assert decision.why == "8 ready replicas are too few"
        one = ModelLayer(ready=1, in_flight=3, p95_s=2.0)
        assert decide(NIGHT, FloorSamples(1, model=one), wanted).floor == 2

    def test_slow_replicas_get_no_more(self):
        slow = ModelLayer(ready=8, in_flight=10, p95_s=2.0)
        decision = decide(NIGHT, FloorSamples(4, model=slow), spec(objective_s=0.8))
        assert (decision.floor, decision.finding.state) == (4, PoolState.SLOW)
        node = NodeLayer(gpus=8, busy=0.1)
        late = ModelLayer(ready=8, in_flight=24, p95_s=2.0)
        decision = decide(NIGHT, FloorSamples(8, model=late, node=node), spec(objective_s=0.8))
        assert (decision.floor, decision.finding.state) == (8, PoolState.SLOW)

    def test_of_equal_needs_the_schedule_is_the_reason(self):
        samples = FloorSamples(1, model=ModelLayer(ready=1, in_flight=12), expected=12)
        assert decide(NOON, samples, spec()).why == "window 0 8 * * mon-fri"

    def test_no_forecast_counts_during_an_event(self):
        event = FloorEvent(NOON - 60 * MINUTE, NOON + 60 * MINUTE, 2)
        wanted = spec(of=schedule(events=(event,)))
        samples = FloorSamples(0, model=IDLE, expected=30)
        assert decide(NOON, samples, wanted).floor == 2
        assert decide(NOON + 61 * MINUTE, samples, wanted).floor == 10
        busy = replace(samples, model=ModelLayer(ready=2, in_flight=9))
        assert decide(NOON, busy, wanted).floor == 3, "what is there does count"


class TestFalling:
    def test_it_falls_by_steps_after_half_an_hour(self):
        """12 replicas, 1 needed: a quarter every five minutes, from the 30th minute on."""
        pool = Pool(spec(), NIGHT, floor=12)
        pool.decide()
        floors = pool.run(70)
        assert floors[:29] == [12] * 29
        steps = [
            floor for before, floor in zip([12, *floors], floors, strict=False) if floor < before
        ]
        assert steps == [9, 7, 6, 5, 4, 3, 2, 1]
        assert [floors.index(floor) + 1 for floor in steps] == [30, 35, 40, 45, 50, 55, 60, 65]

    def test_it_never_falls_below_the_need_of_the_last_half_hour(self):
        pool = Pool(spec(), NIGHT, floor=12)
        pool.decide()
        pool.run(20)
        pool.see(model=ModelLayer(ready=12, in_flight=24)).run(1)  # 8 for one minute
        floors = pool.see(model=IDLE).run(60)
        assert floors[28] == 8
        assert min(floors[:29]) == 8
        assert floors[29] < 8
        assert floors[-1] == 1

    def test_a_need_that_comes_back_starts_the_half_hour_again(self):
        pool = Pool(spec(), NIGHT, floor=4)
        pool.decide()
        pool.run(29)
        pool.see(model=ModelLayer(ready=4, in_flight=12)).run(1)
        floors = pool.see(model=IDLE).run(31)
        assert floors[:29] == [4] * 29
        assert floors[30] == 3

    def test_the_reason_says_what_it_waits_for(self):
        pool = Pool(spec(), NIGHT, floor=4)
        pool.decide()
        pool.run(1)
        assert pool.decision.why == "4 were needed within 30 min; now outside all windows"
        pool.run(29)
        assert pool.decision.why == "not needed for 30 min; now outside all windows"
        pool.run(1)
        assert pool.decision.why == "it has just been lowered; now outside all windows"

    def test_a_window_that_ends_is_released_slowly(self):
        pool = Pool(spec(), NIGHT.replace(hour=18, minute=0), floor=4)
        pool.decide()
        floors = dict(enumerate(pool.run(90), 1))
        assert floors[30] == 4  # 18:30, when the window ends
        assert floors[58] == 4
        assert floors[59] == 3  # half an hour after the last minute of it
        assert floors[90] == 1

    @pytest.mark.parametrize("minutes", [1, 10, 30, 90])
    def test_the_time_to_wait_is_the_schedules(self, minutes):
        pool = Pool(spec(of=schedule(release=minutes * MINUTE)), NIGHT, floor=2)
        pool.decide()
        floors = pool.run(minutes)
        assert floors == [2] * (minutes - 1) + [1]

    def test_what_was_not_watched_counts_as_needed(self):
        pool = Pool(spec(), NIGHT, floor=4)
        pool.decide()
        pool.run(20)
        pool.now += 60 * MINUTE
        floors = pool.run(30)
        assert floors == [4] * 30
        assert pool.run(1) == [3]

    def test_nothing_falls_while_nothing_is_seen(self):
        pool = Pool(spec(), NIGHT, floor=4, model=None)
        pool.decide()
        assert pool.run(120) == [4] * 120
        assert pool.decision.finding.state is PoolState.UNKNOWN
        assert pool.decision.why == "nothing is seen of the replicas"
        assert pool.see(model=IDLE).run(30)[-2:] == [4, 3]

    def test_without_a_watch_the_schedule_alone_decides(self):
        pool = Pool(spec(watching=False), NIGHT, floor=4, model=None)
        pool.decide()
        assert pool.run(30)[-2:] == [4, 3]

    def test_the_schedule_raises_what_is_not_seen(self):
        assert decide(NOON, FloorSamples(1), spec()).floor == 4


class TestHold:
    def test_a_hold_stops_everything(self):
        for floor in (0, 2, 50):
            decision = decide(NOON, FloorSamples(floor, model=IDLE, held="black friday"), spec())
            assert decision.floor == floor
            assert decision.why == "held: black friday"
            assert decision.batch is None

    def test_what_was_needed_meanwhile_is_remembered(self):
        pool = Pool(spec(), NIGHT, floor=6).see(held="x")
        pool.decide()
        pool.see(model=ModelLayer(ready=6, in_flight=18)).run(20)
        pool.see(model=IDLE, held=None)
        assert pool.run(28) == [6] * 28


class TestLimits:
    def test_the_ceilings_hold_against_all(self):
        samples = FloorSamples(1, model=ModelLayer(ready=9, in_flight=900), expected=900)
        assert decide(NOON, samples, spec()).floor == 20
        assert decide(NOON, samples, spec(max_floor=7)).floor == 7
        assert decide(NOON, samples, spec(max_floor=70)).floor == 20
        told = decide(NOON, samples, spec(max_floor=7)).why
        assert told.startswith("the platform allows 7; without it 300 (forecast: ")

    def test_the_platform_has_a_least_too(self):
        nothing = schedule(floor=0, windows=())
        assert decide(NIGHT, FloorSamples(0, model=IDLE), spec(of=nothing)).floor == 0
        assert decide(NIGHT, FloorSamples(0, model=IDLE), spec(of=nothing, min_floor=1)).floor == 1

    def test_a_floor_above_its_ceiling_falls_at_once(self):
        assert decide(NIGHT, FloorSamples(30, model=IDLE), spec()).floor == 20

    def test_what_the_base_needs_until_midnight_is_put_aside(self):
        """40 GPU-hours, 3 spent, 21 for the base: 16 are left, for 32 more for half an hour."""
        wanted = spec(of=schedule(gpu_hours_per_day=40, max_floor=99))
        memory = FloorMemory((PastNeed(NIGHT, 1),), NIGHT, None, NIGHT.date(), 3.0)
        busy = ModelLayer(ready=1, in_flight=999)
        assert decide(NIGHT, FloorSamples(1, memory, busy), wanted).floor == 33
        two = replace(wanted, gpus=2)  # 3 spent, 42 for the base: not even that is affordable
        decision = decide(NIGHT, FloorSamples(1, memory, busy), two)
        assert decision.floor == 0
        assert decision.why.startswith("37.0 GPU-hours are left of the day's; without it ")

    def test_a_budget_that_is_used_up_leaves_the_base(self):
        wanted = spec(of=schedule(gpu_hours_per_day=30))
        pool = Pool(wanted, NIGHT.replace(hour=0), floor=1)
        pool.decide()
        floors = pool.see(model=ModelLayer(ready=9, in_flight=60)).run(24 * 60 - 1)
        assert floors[0] > 9
        assert floors[300] == floors[-60] == 1
        assert floors[-1] <= 2, "the last half hour may have what is left"
        assert pool.decision.memory.spent_gpu_hours <= 30

    def test_a_new_day_has_a_new_budget(self):
        wanted = spec(of=schedule(gpu_hours_per_day=30))
        pool = Pool(wanted, NIGHT.replace(hour=0), floor=1)
        pool.decide()
        pool.see(model=ModelLayer(ready=9, in_flight=60)).run(24 * 60 - 1)
        assert pool.run(1)[0] > 9
        assert pool.decision.memory.day == NIGHT.date() + timedelta(days=1)
        assert pool.decision.memory.spent_gpu_hours == pytest.approx(0)

    def test_before_the_first_decision_the_floor_counts_as_it_is(self):
        decision = decide(NIGHT, FloorSamples(2, model=IDLE), spec(gpus=4))
        assert decision.memory.spent_gpu_hours == 3 * 2 * 4

    @pytest.mark.parametrize(
        ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2028-02-29", 24)]
    )
    def test_a_day_costs_the_hours_that_it_has(self, day, hours):
        nothing = schedule(windows=(), floor=2)
        pool = Pool(spec(of=nothing), datetime.fromisoformat(day).replace(tzinfo=BERLIN), floor=2)
        pool.decide()
        pool.run(hours * 60 - 1)
        assert pool.decision.memory.spent_gpu_hours == pytest.approx(2 * hours, abs=0.05)
        pool.run(1)
        assert pool.decision.memory.spent_gpu_hours == 0

    def test_hours_before_midnight_are_not_counted_twice(self):
        late = NIGHT.replace(hour=23, minute=30)
        pool = Pool(spec(of=schedule(windows=())), late, floor=4)
        pool.decide()
        pool.now += 60 * MINUTE
        pool.decide()
        assert pool.decision.memory.spent_gpu_hours == pytest.approx(4 * 0.5)


class TestBatch:
    BATCH = schedule(batch=Batch("ember-batch", 6, gpus=10))

    @pytest.mark.parametrize(
        ("online", "left"), [(1, 6), (4, 6), (5, 5), (8, 2), (10, 0), (14, 0), (20, 0)]
    )
    def test_batch_gets_what_online_does_not_need(self, online, left):
        samples = FloorSamples(1, model=ModelLayer(ready=1, in_flight=3 * online))
        decision = decide(NIGHT, samples, spec(of=self.BATCH))
        assert (decision.floor, decision.batch) == (online, left)

    def test_replicas_above_the_floor_need_gpus_too(self):
        samples = FloorSamples(1, model=ModelLayer(ready=6, warming=2))
        assert decide(NIGHT, samples, spec(of=self.BATCH)).batch == 2

    def test_replicas_with_several_gpus_count_as_many(self):
        samples = FloorSamples(3, model=ModelLayer(ready=3, in_flight=9))
        assert decide(NIGHT, samples, spec(of=self.BATCH, gpus=2)).batch == 4
        assert decide(NIGHT, samples, spec(of=self.BATCH, gpus=2, batch_gpus=4)).batch == 1

    def test_without_batch_there_is_nothing_to_release(self):
        assert decide(NIGHT, FloorSamples(1, model=IDLE), spec()).batch is None


# --- properties ---------------------------------------------------------------------------------

MOMENTS = st.integers(0, 3 * 366 * 86_400).map(
    lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
FLOORS = st.integers(0, 30)
LOADS = st.floats(0, 200, allow_subnormal=False)


@st.composite
def models(draw):
    in_flight = draw(LOADS)
    return ModelLayer(
        ready=draw(FLOORS),
        warming=draw(st.integers(0, 10)),
        in_flight=in_flight,
        queued=in_flight * draw(st.floats(0, 1)),
        slope=draw(st.floats(-1, 1)),
        p95_s=draw(st.none() | st.floats(0.01, 10)),
    )


@st.composite
def memories(draw, now):
    ages = draw(st.lists(st.integers(0, 60), max_size=5, unique=True))
    floors = draw(st.lists(FLOORS, min_size=len(ages), max_size=len(ages), unique=True))
    peaks = tuple(
        PastNeed(now - age * MINUTE, floor)
        for age, floor in zip(sorted(ages, reverse=True), sorted(floors, reverse=True), strict=True)
    )
    if not peaks:
        return FloorMemory()
    stepped = draw(st.none() | st.integers(0, 60))
    return FloorMemory(
        peaks,
        now - draw(st.integers(0, 20)) * MINUTE,
        None if stepped is None else now - stepped * MINUTE,
        now.astimezone(BERLIN).date(),
        draw(st.floats(0, 200)),
    )


@st.composite
def cases(draw):
    now = draw(MOMENTS)
    base = draw(st.integers(0, 3))
    most = draw(st.integers(3, 25))
    event = FloorEvent(
        now - 5 * MINUTE, now + draw(st.integers(1, 60)) * MINUTE, draw(st.integers(0, most))
    )
    wanted = FloorSpec(
        schedule(
            floor=base,
            max_floor=most,
            windows=(
                FloorWindow("0 8 * * mon-fri", timedelta(hours=10), draw(st.integers(0, most))),
            ),
            events=draw(st.sampled_from([(), (event,)])),
            gpu_hours_per_day=draw(st.sampled_from([math.inf, 80.0, 200.0])),
            batch=draw(st.sampled_from([None, Batch("b", 4, 12)])),
        ),
        per_replica=draw(st.sampled_from([0.75, 3.0, 12.0])),
        gpus=draw(st.sampled_from([1, 2])),
        objective_s=draw(st.sampled_from([None, 0.8])),
        max_floor=draw(st.none() | st.integers(1, 40)),
    )
    samples = FloorSamples(
        floor=draw(FLOORS),
        memory=draw(memories(now)),
        model=draw(st.none() | models()),
        node=draw(st.none() | st.floats(0, 1).map(lambda busy: NodeLayer(4, busy))),
        expected=draw(st.none() | LOADS),
    )
    return now, samples, wanted


@patient
@given(case=cases(), more=st.floats(0, 100))
def test_more_demand_never_means_a_lower_floor(case, more):
    now, samples, wanted = case
    assume(samples.model is not None)
    busier = replace(samples.model, in_flight=samples.model.in_flight + more)
    waiting = replace(samples.model, queued=samples.model.queued + more)
    growing = replace(samples.model, slope=samples.model.slope + more)
    before = decide(now, samples, wanted)
    for model in (busier, waiting, growing):
        after = decide(now, replace(samples, model=model), wanted)
        assert after.floor >= before.floor
        assert after.need >= before.need


@patient
@given(case=cases(), more=st.floats(0, 100))
def test_a_higher_forecast_never_means_a_lower_floor(case, more):
    now, samples, wanted = case
    before = decide(now, samples, wanted).floor
    raised = replace(samples, expected=(samples.expected or 0) + more)
    assert decide(now, raised, wanted).floor >= before


@patient
@given(case=cases())
def test_a_schedule_that_wants_more_never_means_a_lower_floor(case):
    now, samples, wanted = case
    windows = tuple(
        replace(each, floor=wanted.schedule.max_floor) for each in wanted.schedule.windows
    )
    more = replace(wanted, schedule=replace(wanted.schedule, windows=windows))
    assert decide(now, samples, more).floor >= decide(now, samples, wanted).floor


@patient
@given(case=cases())
def test_a_decision_that_is_carried_out_is_not_decided_again(case):
    now, samples, wanted = case
    first = decide(now, samples, wanted)
    second = decide(now, replace(samples, floor=first.floor, memory=first.memory), wanted)
    assert second.floor == first.floor
    third = decide(now, replace(samples, floor=second.floor, memory=second.memory), wanted)
    assert (third.floor, third.memory) == (second.floor, second.memory)


@patient
@given(case=cases())
def test_no_floor_is_above_a_ceiling(case):
    now, samples, wanted = case
    floor = decide(now, samples, wanted).floor
    assert 0 <= floor <= wanted.schedule.max_floor
    assert wanted.max_floor is None or floor <= wanted.max_floor


@patient
@given(case=cases())
def test_a_floor_rises_to_the_need_unless_a_limit_says_why_not(case):
    now, samples, wanted = case
    decision = decide(now, samples, wanted)
    assert decision.floor >= decision.need or "; without it " in decision.why


@patient
@given(case=cases())
def test_a_floor_falls_by_a_step_at_most_unless_a_limit_says_why(case):
    now, samples, wanted = case
    decision = decide(now, samples, wanted)
    if "; without it " not in decision.why:
        assert decision.floor >= samples.floor - max(1, samples.floor // 4)


@patient
@given(case=cases())
def test_a_floor_does_not_fall_below_what_was_lately_needed(case):
    now, samples, wanted = case
    decision = decide(now, samples, wanted)
    lately = [p.floor for p in samples.memory.past_needs if now - p.at < wanted.schedule.release]
    if "; without it " not in decision.why:
        assert decision.floor >= min(samples.floor, max([decision.need, *lately]))


@patient
@given(case=cases(), words=st.text(min_size=1))
def test_under_a_hold_the_floor_is_what_it_is(case, words):
    now, samples, wanted = case
    decision = decide(now, replace(samples, held=words), wanted)
    assert (decision.floor, decision.batch) == (samples.floor, None)


@patient
@given(case=cases())
def test_online_and_batch_together_never_want_more_gpus_than_there_are(case):
    now, samples, wanted = case
    decision = decide(now, samples, wanted)
    if (batch := wanted.schedule.batch) is None:
        assert decision.batch is None
        return
    assert 0 <= decision.batch <= batch.floor
    if decision.batch:
        assert decision.floor * wanted.gpus + decision.batch * wanted.batch_gpus <= batch.gpus


@patient
@given(case=cases())
def test_memory_stays_small_and_in_order(case):
    now, samples, wanted = case
    memory = decide(now, samples, wanted).memory
    floors = [peak.floor for peak in memory.past_needs]
    times = [peak.at for peak in memory.past_needs]
    assert floors == sorted(set(floors), reverse=True)
    assert times == sorted(times)
    assert all(now - at < wanted.schedule.release for at in times)
    assert memory.at >= now


@settings(patient, max_examples=12)
@given(
    loads=st.lists(st.tuples(st.integers(1, 200), LOADS), min_size=1, max_size=12),
    budget=st.integers(26, 120),
    day=st.sampled_from(["2026-03-29", "2026-10-25", "2028-02-29", "2026-11-30"]),
    every=st.sampled_from([5, 10]),
)
def test_a_day_never_costs_more_than_its_budget(loads, budget, day, every):
    """Whatever comes, with a decision every few minutes."""
    wanted = spec(of=schedule(gpu_hours_per_day=budget, max_floor=40))
    midnight = datetime.fromisoformat(day).replace(tzinfo=BERLIN)
    tomorrow = (midnight + timedelta(days=1)).astimezone(UTC)
    pool = Pool(wanted, midnight, floor=1)
    cost, plan = 0.0, [load for minutes, load in loads for _ in range(minutes)]
    step = 0
    while pool.now < tomorrow:
        pool.see(model=ModelLayer(ready=2, in_flight=plan[step % len(plan)]))
        floor = pool.decide()
        assert floor >= 1, "the base is always affordable"
        cost += floor * every / 60
        pool.now += every * MINUTE
        step += every
    assert cost <= budget + 1e-6


@settings(patient, max_examples=25)
@given(loads=st.lists(st.floats(0, 60), min_size=40, max_size=120))
def test_a_floor_covers_each_need_for_half_an_hour(loads):
    pool = Pool(spec(), NIGHT.replace(hour=20), floor=1)
    needs, floors = [], []
    for load in loads:
        pool.see(model=ModelLayer(ready=2, in_flight=load)).run(1)
        needs.append(pool.decision.need)
        floors.append(pool.decision.floor)
    for minute, floor in enumerate(floors):
        assert floor >= max(needs[max(0, minute - 29) : minute + 1])


class TestFailing:
    """Little load means nothing where requests fail, and not everything where some are refused."""

    def test_what_is_refused_is_demand_as_if_it_were_in_flight(self):
        """A queue of 12, and 2 refusals a second of what takes 3 s; of all, the p95 is 10 ms."""
        full = ModelLayer(ready=2, in_flight=12, p95_s=5.0, served_s=3.0, refused=2.0)
        assert decide(NIGHT, FloorSamples(2, model=full), spec()).floor == 6
        assert decide(NIGHT, FloorSamples(2, model=replace(full, refused=0)), spec()).floor == 4

    def test_who_comes_again_and_again_is_not_taken_for_many(self):
        storm = ModelLayer(ready=2, in_flight=12, served_s=3.0, refused=500.0)
        assert decide(NIGHT, FloorSamples(2, model=storm), spec()).floor == 8

    @pytest.mark.parametrize("sign", [{"failed": 0.2}, {"broken": 1}])
    def test_a_pool_that_fails_falls_only_when_it_is_mended(self, sign):
        failing = ModelLayer(ready=4, in_flight=0.1, **sign)
        pool = Pool(spec(), NIGHT, floor=6, model=failing)
        assert pool.run(120)[-1] == 6
        assert pool.see(model=replace(failing, failed=0.001, broken=0)).run(120)[-1] == 1
