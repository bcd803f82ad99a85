"""The simulation: against queueing theory where there is one, against itself, and its command."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from click.testing import CliRunner

from keepalive.failure import Failure
from keepalive.planning import hpa
from keepalive.planning.kpa.settings import read as settings_of
from keepalive.planning.pictures.simulation import draw
from keepalive.planning.pictures.style import seconds
from keepalive.planning.simulation import service as services
from keepalive.planning.simulation.command import simulate as command
from keepalive.planning.simulation.fleet import GpuPool, Nodes
from keepalive.planning.simulation.floors import floors
from keepalive.planning.simulation.options import require
from keepalive.planning.simulation.run import Scenario, SecondsCache, simulate
from keepalive.planning.simulation.scaling import HpaScaling, KnativeScaling, StaticScaling
from keepalive.planning.simulation.service import BatchTimes, line
from keepalive.planning.simulation.serving import BINS, bins, percentiles
from keepalive.planning.traces import shapes
from keepalive.planning.traces.load import load
from keepalive.planning.traces.steps import UnreadableTrace
from keepalive.prescaler.schedule import FloorWindow, Schedule

if TYPE_CHECKING:
    from keepalive.planning.simulation.outcome import SimulationOutcome

HOUR = 3600
GPU = line(0.012, 0.006, 16)


def run(rates, service=GPU, *, rule=None, replicas=1, memo=None, **others) -> SimulationOutcome:
    rates = shapes.steady(rates, HOUR) if isinstance(rates, int | float) else rates
    rule = rule or partial(StaticScaling, replicas, 10**6)
    return simulate(Scenario(rates, service, (20.0,), rule, **others), memo)


def knative(*, ready=1, batch=16, **pairs):
    named = ((name.replace("_", "-"), value) for name, value in pairs.items())
    return partial(KnativeScaling, settings_of(named, 2 * batch), batch, ready)


def mean_latency(outcome):
    """From the histogram, whose bins are 1 % wide."""
    counts = outcome.counts.sum(axis=0)
    middles = 1e-3 * np.exp((np.arange(BINS) + 0.5) * math.log(1.01))
    return float((counts * middles).sum() / counts.sum())


# --- the queue ----------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_replica_without_batches_waits_as_theory_says(load):
    """M/D/1: a request stays s + ρ s ÷ (2 (1 − ρ)) on average."""
    s = 0.1
    outcome = run(shapes.steady(load / s, 4 * HOUR), BatchTimes((s,), 0.0), exact=True)
    assert mean_latency(outcome) == pytest.approx(s + load * s / (2 * (1 - load)), rel=0.04)


def test_a_lone_request_costs_a_batch_of_one():
    outcome = run(0.5, BatchTimes((0.05, 0.06), 0.0))
    assert outcome.latency(0.5) == pytest.approx(0.05, rel=0.01)


def test_a_full_replica_does_what_its_best_batch_allows():
    """16 in 0.108 s are 148 a second, whatever comes."""
    outcome = run(300, BatchTimes(GPU.times, 0.0), deadline_s=10.0)
    assert outcome.counts[-1].sum() / 60 == pytest.approx(148.1, rel=0.01)


def test_larger_batches_carry_more():
    alone = run(100, GPU.up_to(1), replicas=1, deadline_s=5.0)
    batched = run(100, GPU, replicas=1, deadline_s=5.0)
    assert alone.lost > 0.4 * alone.requests
    assert batched.lost == 0


def test_every_request_is_answered_or_lost_or_still_there():
    outcome = run(200, rule=partial(StaticScaling, 1, 500), deadline_s=3.0)
    inside = 500 + 2 * 16
    done = int(outcome.counts.sum()) + outcome.lost
    assert outcome.requests - inside <= done <= outcome.requests


def test_requests_beyond_the_queue_are_refused_and_the_rest_wait_no_longer_than_the_queue():
    """148 a second through a queue of 74 is half a second and the batch itself."""
    outcome = run(300, BatchTimes(GPU.times, 0.0), rule=partial(StaticScaling, 1, 74))
    assert outcome.lost == pytest.approx(outcome.requests * (1 - 148.1 / 300), rel=0.02)
    assert outcome.latency(0.99) < 0.5 + 2 * 0.108 + 0.02


def test_a_request_past_its_deadline_is_dropped():
    outcome = run(300, BatchTimes(GPU.times, 0.0), deadline_s=2.0)
    assert outcome.lost > 0.45 * outcome.requests
    assert outcome.latency(1.0) < 2.0 + 0.108 * 1.02 + 0.02


def test_idle_replicas_share_the_work():
    """Each alone with half the load (M/D/1) would stay 0.15 s on average; one queue is better."""
    assert mean_latency(run(10, BatchTimes((0.1,), 0.0), replicas=2, exact=True)) < 0.135


def test_percentiles_come_from_bins_one_per_cent_wide():
    some = np.bincount(bins(np.array([0.1] * 98 + [2.0] * 2)), minlength=BINS)
    counts = np.stack([some, np.zeros(BINS, np.int64)])
    assert percentiles(counts, 0.5) == pytest.approx([0.1, 0], rel=0.01)
    assert percentiles(counts, 0.98) == pytest.approx([0.1, 0], rel=0.01)
    assert percentiles(counts, 0.99) == pytest.approx([2.0, 0], rel=0.01)


# --- chance and shortcuts -----------------------------------------------------------------------


def test_the_same_seed_gives_the_same_and_another_does_not():
    one, same, other = (run(40, seed=seed).plain() for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize("rate", [30, 90, 250])
def test_seconds_that_stand_for_others_change_nothing_that_matters(rate):
    """At 10 %, 30 % and 84 % of what two replicas can do."""
    exact = run(rate, replicas=2, exact=True)
    short = run(rate, replicas=2)
    for part in (0.5, 0.95, 0.99):
        assert short.latency(part) == pytest.approx(exact.latency(part), rel=0.08)
    assert short.requests == pytest.approx(exact.requests, rel=0.03)


def test_a_changing_load_is_the_same_with_and_without_shortcuts():
    rates = shapes.tide(20, 400, shapes.DAY_S // 12)
    rule = knative(metric="rps", target="100", min_scale="1", max_scale="6")
    exact, short = run(rates, rule=rule, exact=True), run(rates, rule=rule)
    assert short.latency(0.99) == pytest.approx(exact.latency(0.99), rel=0.1)
    assert short.gpu_hours == pytest.approx(exact.gpu_hours, rel=0.05)


def test_one_memo_serves_several_runs():
    memo = SecondsCache()
    first = run(90, replicas=2, memo=memo)
    known = sum(len(samples) for samples in memo.samples.values())
    second = run(90, replicas=2, memo=memo)
    assert sum(len(samples) for samples in memo.samples.values()) == known
    assert second.latency(0.99) == pytest.approx(first.latency(0.99), rel=0.05)


# --- scaling ------------------------------------------------------------------------------------


def test_the_first_request_after_zero_waits_for_a_cold_start():
    rates = np.zeros(600)
    rates[300:310] = 5
    outcome = run(rates, rule=knative(ready=0, target_utilization_percentage="100"))
    assert outcome.series.ready[:300].max() == 0
    assert 15 < outcome.latency(0.9) < 25
    assert outcome.met_cold > 0.9 * outcome.requests
    assert outcome.lost == 0


def test_a_single_request_that_waits_for_the_only_replica_met_a_cold_start():
    """When it is answered, no replica is starting any more."""
    rates = np.zeros(600)
    rates[300] = 1.0
    rule = knative(ready=0, target_utilization_percentage="100")
    outcome = run(rates, rule=rule, seed=3)
    assert outcome.requests >= 1
    assert outcome.met_cold == outcome.requests


def test_a_warm_floor_saves_that_wait():
    rates = np.zeros(600)
    rates[300:310] = 5
    outcome = run(rates, rule=knative(ready=1, min_scale="1"))
    assert outcome.latency(0.99) < 0.1
    assert outcome.met_cold == 0


def test_it_goes_back_to_zero():
    rates = np.zeros(600)
    rates[10:20] = 5
    outcome = run(rates, rule=knative(ready=0))
    assert outcome.series.wanted[60] > 0
    assert outcome.series.wanted[-1] == 0


def test_replicas_follow_requests_per_second():
    """200 a second at 50 for each replica are 4."""
    outcome = run(200, rule=knative(metric="rps", target="50", target_utilization_percentage="100"))
    assert set(outcome.series.wanted[600:].tolist()) <= {4, 5}


def test_a_floor_is_held_and_bounded_by_the_maximum():
    planned = np.full(HOUR, 3)
    planned[1800:] = 9
    outcome = run(1, rule=knative(max_scale="5"), floors=planned)
    assert outcome.series.wanted[1700] == 3
    assert outcome.series.wanted[-1] == 5


def test_a_falling_replica_holds_its_gpu_until_it_is_drained():
    planned = np.full(600, 2)
    planned[300:] = 1
    rule = knative(min_scale="1", metric="rps", target="100")
    quick = run(np.full(600, 1.0), rule=rule, floors=planned, drain_s=0.0)
    slow = run(np.full(600, 1.0), rule=rule, floors=planned, drain_s=60.0)
    assert (slow.gpu_hours - quick.gpu_hours) * 3600 == pytest.approx(60, abs=3)


def test_an_hpa_follows_how_busy_the_replicas_are():
    """At 10 a second of 0.1 s without batches they are busy with 1 replica's work: of 0.7 each
    that is two."""
    spec = hpa.HpaSpec(0.7, 10)
    outcome = run(10, BatchTimes((0.1,), 0.0), rule=partial(HpaScaling, spec, 1000, 1))
    assert outcome.series.wanted[-1] == 2


def test_an_hpa_without_figures_yet_changes_nothing():
    spec = hpa.HpaSpec(0.7, 10)
    outcome = run(
        np.full(60, 20.0), BatchTimes((0.1,), 0.0), rule=partial(HpaScaling, spec, 1000, 3)
    )
    assert set(outcome.series.wanted[:29].tolist()) == {3}


def test_a_dead_replica_comes_back_after_a_cold_start():
    outcome = run(30, replicas=3, failures_per_hour=4.0)
    assert 4 <= outcome.starts <= 24
    assert outcome.series.ready.min() < 3
    assert outcome.series.ready[-1] >= 2
    assert set((outcome.series.ready + outcome.series.starting).tolist()) == {3}


# --- GPUs ---------------------------------------------------------------------------------------


def test_a_new_node_takes_its_time():
    planned = np.full(600, 1)
    planned[100:] = 2
    rule = knative(min_scale="1")
    rates = np.full(600, 1.0)
    there = run(rates, rule=rule, floors=planned)
    coming = run(rates, rule=rule, floors=planned, nodes=Nodes(1, 2, 120.0))
    first = [int(np.argmax(each.series.ready == 2)) for each in (there, coming)]
    assert first[1] - first[0] == 120


def test_what_is_held_is_paid_for():
    assert run(1, nodes=Nodes(4, 4, 60.0)).gpu_hours == pytest.approx(4)


def test_no_more_replicas_run_than_there_are_gpus():
    outcome = run(
        300, rule=knative(metric="rps", target="50", max_scale="8"), nodes=Nodes(1, 3, 60.0)
    )
    assert outcome.series.ready.max() == 3
    assert outcome.series.starting.max() >= 3
    assert outcome.most == 3


def test_an_idle_gpu_is_kept_for_a_while():
    gpus = GpuPool(Nodes(0, 2, 60.0, keep_s=100.0))
    assert gpus.take(0.0) == 60.0
    gpus.give(200.0)
    assert (gpus.paid(250.0), gpus.paid(300.0)) == (1, 0)
    assert gpus.take(310.0) == 370.0


def test_a_kept_gpu_is_there_at_once():
    gpus = GpuPool(Nodes(0, 2, 60.0, keep_s=100.0))
    gpus.take(0.0)
    gpus.give(200.0)
    assert gpus.take(250.0) == 250.0


# --- floors -------------------------------------------------------------------------------------


def test_floors_rise_before_their_window_and_fall_slowly_after_it():
    schedule = Schedule(
        ZoneInfo("UTC"),
        timedelta(minutes=12),
        1,
        20,
        windows=(FloorWindow("0 8 * * *", timedelta(hours=1), 8),),
    )
    begin = datetime(2026, 3, 2, tzinfo=ZoneInfo("UTC"))
    found = floors(schedule, begin, 11 * HOUR)
    assert found[8 * HOUR - 13 * 60] == 1
    assert found[8 * HOUR - 12 * 60] == 8
    assert found[9 * HOUR + 28 * 60] == 8
    assert found[9 * HOUR + 31 * 60] == 6
    assert found[-1] == 1


# --- what is read -------------------------------------------------------------------------------


def test_measured_batches_are_read_and_filled_in(tmp_path):
    path = tmp_path / "batches.json"
    path.write_text('{"batch_seconds": {"2": 0.02, "4": 0.03}}')
    assert services.read(path).times == pytest.approx((0.02, 0.02, 0.025, 0.03))
    assert services.read(path, 3).batch == 3


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"batch_seconds": {}}', '{"batch_seconds": {"0": 1}}',
             '{"batch_seconds": {"1": 0}}', '{"batch_seconds": {"1": "a"}}'],
)  # fmt: skip
def test_what_are_no_measured_batches_is_refused(tmp_path, text):
    path = tmp_path / "batches.json"
    path.write_text(text)
    with pytest.raises(UnreadableTrace, match=r"batches.json is (no JSON|not like)"):
        services.read(path)


def test_a_batch_that_was_not_measured_is_refused(tmp_path):
    path = tmp_path / "batches.json"
    path.write_text('{"batch_seconds": {"8": 0.02}}')
    with pytest.raises(UnreadableTrace, match="has batches up to 8, not 16"):
        services.read(path, 16)


def test_cold_starts_are_those_of_ember_coldstart(tmp_path):
    path = tmp_path / "cold.json"
    path.write_text(json.dumps({"ready_s": [1.5, 2], "spans": []}))
    assert services.cold_starts(path) == (1.5, 2.0)


@pytest.mark.parametrize("text", ["{}", '{"ready_s": []}', '{"ready_s": [-1]}', '{"ready_s": 3}'])
def test_what_are_no_cold_starts_is_refused(tmp_path, text):
    path = tmp_path / "cold.json"
    path.write_text(text)
    with pytest.raises(UnreadableTrace, match="is not what `ember coldstart --json` writes"):
        services.cold_starts(path)


# --- loads --------------------------------------------------------------------------------------


def test_a_tide_has_its_peak_when_it_is_said_to():
    rates = load("tide:50-800,hour=18")
    assert int(rates.argmax()) == 18 * HOUR
    assert (round(rates.max()), round(rates.min())) == (800, 50)


def test_a_weekend_can_have_less():
    rates = load("tide:10-100,weekend=0.5", 7 * shapes.DAY_S)
    assert rates[: 5 * shapes.DAY_S].max() == pytest.approx(100)
    assert rates[5 * shapes.DAY_S :].max() == pytest.approx(50)


def test_a_flash_crowd_comes_in_a_straight_line():
    rates = load("flash:50-800,hour=1,rise=5m,hold=10m,fall=1m", 2 * HOUR)
    assert (rates[HOUR], rates[HOUR + 150], rates[HOUR + 300]) == (50, 425, 800)
    assert (rates[HOUR + 900], rates[HOUR + 960]) == (800, 50)


def test_spikes_are_the_same_for_the_same_seed():
    one, same, other = (load(f"spikes:50-400,seed={seed}") for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert one.min() == 50
    assert 100 < one.max() <= 400


def test_a_file_is_a_step_function_and_lasts_as_long_as_its_steps(tmp_path):
    path = tmp_path / "load.csv"
    path.write_text("0,60\n60,120\n120,0\n")
    rates = load(str(path), per_minute=True)
    assert len(rates) == 180
    assert (rates[0], rates[59], rates[60], rates[120]) == (1, 1, 2, 0)
    assert len(load(str(path), 600)) == 600


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing.csv", "is neither a file nor one of steady:50"),
        ("steady:many", "is not like steady:50"),
        ("flash:800-50", "is not like flash:50-800"),
        ("tide:50", "is not like tide:50-800"),
        ("steady:5,hour=3", "steady has no 'hour'; it has: nothing"),
        ("flash:5-8,rise=5", "'rise=5' has no value that rise can have"),
    ],
)
def test_a_load_that_cannot_be_read_says_why(text, says):
    done = CliRunner().invoke(command, [text])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


# --- the command --------------------------------------------------------------------------------


def test_the_command_tells_the_figures():
    done = CliRunner().invoke(command, ["steady:20", "--days", "0.02", "--static", "2", "--json"])
    told = json.loads(done.output)
    assert told["requests"] == pytest.approx(20 * 0.02 * 86_400, rel=0.1)
    assert told["gpu_hours"] == pytest.approx(0.96, abs=0.01)
    assert told["lost"] == 0


def test_the_command_draws(tmp_path):
    picture, page = tmp_path / "day.png", tmp_path / "day.html"
    common = ["flash:5-60,hour=0.1", "--days", "0.02", "--set", "min-scale=1", "--price", "2"]
    for path in (picture, page):
        done = CliRunner().invoke(
            command,
            [*common, "--picture", str(path), "--title", "A <day>", "--objective", "800ms"],
        )
        assert done.exit_code == 0, done.output
        assert "cost of a million" in done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "A &lt;day&gt;" in page.read_text()
    assert "<svg" in page.read_text()


def test_a_schedule_counts(tmp_path):
    schedule = tmp_path / "schedule.toml"
    schedule.write_text('timezone = "Europe/Berlin"\nfloor = 3\nmax_floor = 5\n')
    done = CliRunner().invoke(
        command, ["steady:1", "--days", "0.02", "--schedule", str(schedule), "--json"]
    )
    assert json.loads(done.output)["most_replicas"] == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "max-scal=3"], "There is no setting 'max-scal'"),
        (["--static", "2", "--hpa", "70"], "--static and --hpa cannot both be"),
        (["--nodes", "held=2"], "most= is needed"),
        (["--nodes", "gpus=2"], "'gpus=2' is not like held=2,most=20"),
        (["--nodes", "held=4,most=2"], "not below held="),
        (["--cold-start", "nothing.json"], "is no number of seconds"),
        (["--picture", "day.docx"], "Format 'docx' is not supported"),
    ],
)  # fmt: skip
def test_bad_options_say_what_is_possible(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["steady:1", "--days", "0.001", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


def test_what_is_missing_is_named_before_anything_takes_long():
    with pytest.raises(Failure, match=r"needs no_such_module: make install EXTRAS=plan"):
        require("numpy", "no_such_module")


def test_times_are_told_as_people_do():
    assert (seconds(0.0834), seconds(12.34)) == ("83 ms", "12.3 s")


def test_several_days_are_drawn_with_their_names(tmp_path):
    path = tmp_path / "week.svg"
    draw(run(load("steady:0.01", 2 * shapes.DAY_S)), path, "Days")
    assert "Tue 12:00" in path.read_text()
