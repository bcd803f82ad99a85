"""The cases of `make bench-elastic` with the settings that its search has found."""

from __future__ import annotations

from functools import partial

import pytest

from keepalive.planning.kpa.settings import AutoscalerSettings
from keepalive.planning.search.trial import Trial
from keepalive.planning.simulation import scaling
from tests.bench.elastic import cases


@pytest.fixture(scope="module")
def flash():
    return cases.FLASH.trials()


def test_a_flash_crowd_keeps_its_objective_for_a_fifth_of_static_peak(flash):
    """50 to 800 requests/s in five minutes, floor 2, ceiling 20: p99 ≤ 800 ms in every five
    minutes, nothing refused. Static peak is 17 replicas all day: 800 ÷ 48.8 = 16.4."""
    planned = flash.choice(cases.FLASH.choice)
    assert cases.FLASH.choice.floor == 2
    assert planned.outcome.most <= 20
    assert planned.worst_p99_s <= 0.8
    assert planned.outcome.lost == 0
    assert planned.outcome.met_cold == 0
    assert planned.outcome.gpu_hours <= 0.2 * 17 * 24


@pytest.mark.parametrize("floor", [0, 1])
def test_knative_as_it_comes_fails_in_the_same_crowd(flash, floor):
    settings = AutoscalerSettings(container_concurrency=32, min_scale=floor, max_scale=20)
    rule = partial(scaling.KnativeScaling, settings, 16, 2)
    naive = Trial("naive", flash.run(cases.FLASH.service, rule), flash.objective)
    assert naive.worst_p99_s > 10 * flash.objective.p99_s
    assert naive.outcome.lost > 0
    assert not naive.kept


def test_the_tide_saves_58_per_cent_of_eight_static_replicas():
    """1,000 to 3,500 requests/s and back, in a quarter of a day."""
    case = cases.QUICK_TIDE
    planned = case.trials().choice(case.choice)
    assert planned.worst_p99_s <= case.objective.p99_s
    assert planned.outcome.lost == 0
    assert planned.outcome.gpu_hours <= 0.42 * 8 * 6


def test_the_hpa_of_qps_hpa_bears_a_surge_at_20_requests_for_each_replica():
    """200 to 600 requests/s in 90 s; a replica does 48.8 in full batches, so 20 is 41 % of that."""
    outcome = cases.surge(20)
    assert outcome.worst(0.99) <= 0.8
    assert outcome.lost == 0
    late = cases.surge(35)  # 72 %: it sees the surge too late to start what it lacks
    assert late.worst(0.99) > 5
    assert late.lost > 0


def test_a_lost_cluster_costs_what_is_sent_there_until_it_is_noticed():
    """Of 200 requests/s half go to each cluster; six replicas bear all of them."""
    borne = cases.drill(6, 10)
    assert borne.lost == 1000
    assert borne.recovered_s == 10
    assert borne.most_p99_s <= 0.8
    short = cases.drill(4, 10)  # which has to start replicas first
    assert short.most_p99_s > 5 * borne.most_p99_s
    assert short.recovered_s > 60


def test_a_floor_on_working_days_saves_the_weekend_and_no_working_day_meets_a_cold_start():
    """From Friday to Sunday. A request on Saturday that finds no replica waits for one. On Sunday
    evening there is none, until the lead time of Monday's window begins."""
    outcome = cases.week(cases.WEEKDAYS, 0, cases.FRIDAY)
    day = cases.SATURDAY - cases.FRIDAY
    assert outcome.series.ready[:day].min() >= 1
    assert outcome.series.met_cold[:day].sum() == 0
    assert outcome.series.ready[-3600] == 0
    assert outcome.series.ready[-1] == 1
    assert outcome.series.met_cold[day:].sum() > 0
    assert outcome.lost == 0
    assert outcome.gpu_hours < 0.6 * 3 * 24
