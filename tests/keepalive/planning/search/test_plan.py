"""The planner: its floors, its search, what it writes, and what it says."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from keepalive.planning.kpa.settings import ScalingMetric, read
from keepalive.planning.pictures.search import frontier
from keepalive.planning.search import files, profile
from keepalive.planning.search.choice import Cover, PlanChoice, inside
from keepalive.planning.search.command import plan
from keepalive.planning.search.descent import Bounds, neighbour, search, start
from keepalive.planning.search.explain import explain
from keepalive.planning.search.naive import naive
from keepalive.planning.search.trial import Objective, Trials
from keepalive.planning.simulation.options import SimulationInput
from keepalive.planning.simulation.service import BatchTimes, line
from keepalive.planning.traces import shapes
from keepalive.prescaler.schedule_file import parse
from tests.knative.manifests import KNATIVE, render

UTC = ZoneInfo("UTC")
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = 3600
GPU = line(0.04, 0.018, 16)  # 48.8 requests/s in full batches of 328 ms
CHOICE = PlanChoice(
    batch=16, metric=ScalingMetric.RPS, use=0.5, cover=Cover.RAMPS, floor=2, most=20, window_s=60,
    delay_s=0, activation=0, lead_s=120,
)  # fmt: skip


def planned(choice, rates, *, cold=30.0, begin=MONDAY, service=GPU):
    return profile.schedule(choice, rates, service, cold_s=cold, begin=begin, timezone=UTC)


def known(rates, *, service=GPU, cold=(20.0,), **others):
    about = {"nodes": None, "deadline_s": 45.0, "failures_per_hour": 0.0, "price": 2.0, "seed": 0}
    return SimulationInput(rates, service, cold, **{**about, **others})


def trials(rates, *, p99=0.8, lost=0.0, **others):
    return Trials(known(rates, **others), Objective(p99, lost), MONDAY, UTC)


CROWD = shapes.flash(10, 150, HOUR, hour=0.5, rise_s=60, hold_s=300, fall_s=300)
"""One hour, with a crowd that comes faster than replicas start."""


# --- a choice -----------------------------------------------------------------------------------


def test_a_replica_is_to_have_a_part_of_what_it_can_do():
    """16 ÷ 0.328 s = 48.8 a second, of which half; 300 a second are 12.3 replicas."""
    assert CHOICE.rate(GPU) == pytest.approx(24.4, abs=0.01)
    assert CHOICE.target(GPU) == 24.4
    assert CHOICE.replicas(300, GPU) == 13
    assert CHOICE.replicas(3000, GPU) == 20


def test_smaller_batches_can_do_less():
    """8 ÷ 0.184 s = 43.5 a second."""
    assert replace(CHOICE, batch=8).rate(GPU) == pytest.approx(21.74, abs=0.01)


def test_the_target_for_concurrency_is_what_is_inside_at_that_rate():
    """At 24.4 a second a batch of two takes 0.076 s, in which 1.85 come: in balance. One and a half
    batches are inside."""
    assert inside(GPU, 24.39) == pytest.approx(1.5 * 1.854, rel=0.01)
    assert replace(CHOICE, metric=ScalingMetric.CONCURRENCY).target(GPU) == 2.8


def test_beyond_what_a_replica_can_do_full_batches_are_inside():
    assert inside(BatchTimes((1.0,)), 5.0) == 1.5


# --- floors -------------------------------------------------------------------------------------


def test_a_flash_crowd_gets_a_window_up_to_its_peak():
    """800 a second need 33, of which 20 are allowed, from 12:00 on; the climb takes 5 minutes, and
    what follows it is the autoscaler's business. The lead time is beside the window."""
    schedule = planned(CHOICE, shapes.flash(40, 800))
    (window,) = schedule.windows
    assert (window.start, window.floor) == ("0 12 * * *", 20)
    assert timedelta(minutes=15) <= window.length <= timedelta(minutes=45)
    assert (schedule.floor, schedule.lead) == (2, timedelta(minutes=2))


def test_a_slow_tide_needs_no_windows_for_its_ramps():
    """50 to 800 in twelve hours is at most 0.1 a second more each second: 7 in the time that a
    replica is late, which half-used replicas bear."""
    assert planned(CHOICE, shapes.tide(50, 800, sharpness=1)).windows == ()


def test_covering_the_day_follows_the_tide():
    schedule = planned(replace(CHOICE, cover=Cover.DAY), shapes.tide(50, 800))
    found = {hour: schedule.at(MONDAY + timedelta(hours=hour)).floor for hour in (8, 14, 20)}
    assert found[8] < found[14] < found[20] == 20
    assert len({window.floor for window in schedule.windows}) <= 6


def test_floors_are_never_below_what_the_load_asks_for():
    rates = shapes.tide(50, 400)
    choice = replace(CHOICE, cover=Cover.DAY)
    schedule = planned(choice, rates)
    for minute in range(0, 24 * 60, 5):
        need = choice.replicas(float(rates[minute * 60]), GPU)
        assert schedule.at(MONDAY + timedelta(minutes=minute)).floor >= need


def test_a_week_gets_working_days_and_weekends():
    rates = shapes.tide(1, 200, 7 * shapes.DAY_S, weekend=0.25)
    schedule = planned(replace(CHOICE, cover=Cover.DAY), rates)
    evening = timedelta(hours=20)
    friday, saturday = (MONDAY + timedelta(days=day) + evening for day in (4, 5))
    assert schedule.at(friday).floor >= 9
    assert schedule.at(saturday).floor <= 4
    assert {window.start.split()[-1] for window in schedule.windows} <= {"mon-fri", "sat,sun"}


def test_a_load_that_begins_at_noon_keeps_its_hours():
    """The crowd comes half an hour later, at 12:30."""
    schedule = planned(CHOICE, CROWD, begin=MONDAY + timedelta(hours=12))
    assert schedule.at(MONDAY + timedelta(hours=12, minutes=35)).floor > 2
    assert schedule.at(MONDAY + timedelta(minutes=35)).floor == 2


def test_the_budget_bears_the_schedule():
    schedule = planned(replace(CHOICE, cover=Cover.DAY), shapes.tide(50, 800))
    hours = sum(
        schedule.at(MONDAY + timedelta(minutes=minute)).floor / 60 for minute in range(1440)
    )
    assert hours * 1.3 < schedule.gpu_hours_per_day < hours * 2


# --- what is written ----------------------------------------------------------------------------


@pytest.mark.parametrize("cover", Cover)
def test_the_pre_scaler_reads_the_schedule_as_it_was_meant(cover):
    rates = shapes.tide(1, 700, 7 * shapes.DAY_S, weekend=0.3)
    schedule = planned(replace(CHOICE, cover=cover), rates)
    assert parse(files.toml(schedule)) == schedule


def test_the_component_sets_what_was_chosen(tmp_path):
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "kustomization.yaml").write_text(files.component(CHOICE, GPU, "ember"))
    shutil.copytree(KNATIVE / "base", tmp_path / "base")
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": ["../base"], "components": ["../plan"]})
    )
    (service,) = [
        each
        for each in render(tmp_path / "overlay")
        if each["kind"] == "Service" and each["apiVersion"].startswith("serving.knative.dev")
    ]
    annotations = service["spec"]["template"]["metadata"]["annotations"]
    prefix = "autoscaling.knative.dev/"
    told = {
        key.removeprefix(prefix): value
        for key, value in annotations.items()
        if key.startswith(prefix) and key != f"{prefix}class"
    }
    assert read(told.items(), 32) == CHOICE.settings(GPU)
    assert service["spec"]["template"]["spec"]["containerConcurrency"] == 32


# --- the search ---------------------------------------------------------------------------------


def test_it_starts_with_the_largest_batch_of_which_two_fit():
    """Two of 16 take 0.656 s, two of 8 0.368 s."""
    bounds = Bounds(1, 10, 20)
    assert start(trials(CROWD, p99=0.8), bounds).batch == 16
    assert start(trials(CROWD, p99=0.4), bounds).batch == 8
    assert start(trials(CROWD, p99=0.05), bounds).batch == 1


def test_neighbours_differ_in_one_setting_by_one_step():
    next_to = partial(neighbour, trials=trials(CROWD), bounds=Bounds(1, 10, 20))
    assert next_to(CHOICE, "batch", -1) == replace(CHOICE, batch=8)
    assert next_to(CHOICE, "batch", 1) is None
    assert next_to(CHOICE, "floor", -1) == replace(CHOICE, floor=1)
    assert next_to(CHOICE, "use", 1) == replace(CHOICE, use=0.57)
    assert next_to(CHOICE, "activation", 1) is None
    without = replace(CHOICE, floor=0)
    assert next_to(without, "activation", 1) == replace(without, activation=2)


def test_it_finds_what_keeps_the_objective_for_less_than_static_replicas():
    found = trials(CROWD)
    best, proven = search(found, Bounds(1, 8, 24), lambda _: None)
    assert proven
    assert best.kept
    assert best.outcome.lost == 0
    static, zero, one, _ = naive(found, 8)
    assert static.kept
    assert best.outcome.gpu_hours < static.outcome.gpu_hours
    assert not zero.kept
    assert not one.kept
    assert len(found.done) <= 24
    cheaper = [
        each
        for each in found.done.values()
        if each.kept and each.outcome.gpu_hours < 0.98 * best.outcome.gpu_hours
    ]
    assert cheaper == []


def test_it_says_when_nothing_keeps_the_objective():
    found = trials(shapes.steady(200, 900))
    best, proven = search(found, Bounds(1, 2, 12), lambda _: None)
    assert not proven
    assert not best.kept


def test_each_choice_is_simulated_once():
    found = trials(shapes.steady(20, 300))
    first = found.choice(CHOICE)
    assert found.choice(CHOICE) is first
    assert found.choice(CHOICE, 1) is not first
    assert list(found.done) == [CHOICE]


def test_it_explains_each_setting_against_its_neighbours():
    found = trials(CROWD)
    best = found.choice(replace(CHOICE, floor=1, most=8))
    worse = found.choice(replace(CHOICE, floor=1, most=8, cover=Cover.NONE))
    dearer = found.choice(replace(CHOICE, floor=2, most=8))
    assert best.kept
    assert not worse.kept
    said = "\n".join(explain(best, found))
    assert "a full one takes 328 ms, so that a replica can do 48.8 requests/s" in said
    assert "With no windows: misses it (p99" in said
    more = dearer.outcome.gpu_hours / best.outcome.gpu_hours - 1
    assert f"With 2: {more:.1%} more GPU-hours" in said


def test_the_frontier_is_what_nothing_beats():
    found = trials(CROWD)
    some = [found.choice(replace(CHOICE, most=8, floor=floor)) for floor in (1, 2, 4, 8)]
    edge = frontier(some)
    assert edge == sorted(edge, key=lambda each: each.outcome.gpu_hours)
    latencies = [each.worst_p99_s for each in edge]
    assert latencies == sorted(latencies, reverse=True)
    for trial in some:
        assert any(
            each.outcome.gpu_hours <= trial.outcome.gpu_hours
            and each.worst_p99_s <= trial.worst_p99_s
            for each in edge
        )


# --- the command --------------------------------------------------------------------------------


def csv(tmp_path, rates):
    path = tmp_path / "load.csv"
    path.write_text("".join(f"{at},{rates[at]:.3f}\n" for at in range(0, len(rates), 10)))
    return str(path)


def test_the_command_writes_a_plan(tmp_path):
    out = tmp_path / "out"
    done = CliRunner().invoke(
        plan,
        [
            csv(tmp_path, CROWD), "--batch-base", "0.04", "--batch-item", "0.018", "--ceiling", "8",
            "--cold-start", "20", "--tries", "10", "--timezone", "Europe/Berlin", "--name", "faces",
            "--out", str(out), "--explain", "--price", "2",
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "min-scale 0" in done.output
    assert "- Batches up to" in done.output
    schedule = parse((out / "schedule.toml").read_text())
    assert schedule.timezone.key == "Europe/Berlin"
    (patch,) = yaml.safe_load((out / "kustomization.yaml").read_text())["patches"]
    assert patch["target"]["name"] == "faces"
    told = json.loads((out / "plan.json").read_text())
    assert told["trials"]["planned"]["lost"] == 0
    assert told["settings"]["max-scale"] == "8"
    for name in ("pareto.png", "plan.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


def test_the_command_fails_when_nothing_keeps_the_objective(tmp_path):
    load = csv(tmp_path, np.full(300, 500.0))
    done = CliRunner().invoke(plan, [load, "--ceiling", "1", "--tries", "9", "--quiet"])
    assert done.exit_code == 75
    assert "Nothing that was tried keeps the objective at all." in done.output


def test_a_load_without_requests_is_refused(tmp_path):
    refused = CliRunner().invoke(plan, [csv(tmp_path, np.zeros(300))]).exception
    assert "the load has no requests" in str(refused)
    assert refused.exit_code == 65


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--timezone", "Berlin/Europe"], "'Berlin/Europe' is not known here"),
        (["--least", "5", "--ceiling", "2"], "It is above the ceiling of 2"),
        (["--p99", "soon"], "is no number of seconds"),
        (["--tries", "3"], "is not in the range x>=9"),
    ],
)
def test_bad_options_say_what_is_possible(arguments, says):
    done = CliRunner().invoke(plan, ["steady:1", "--days", "0.01", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
