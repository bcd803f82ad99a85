"""What is measured decides; it is kept for the same model on the same machine; it ends in time."""

from __future__ import annotations

import itertools
import random
import threading

import numpy as np
import pytest

from function.runtime.backends.onnx import OnnxEngine
from function.runtime.scheduling import tuning
from function.runtime.scheduling.tuning import CpuTuning, TuningFile, measure
from tests.graphs import dense

SIZES = (1, 2, 4, 8)
NOTHING = itertools.repeat(0.0)


class Clock:
    """Time passes only while an engine runs, and then for all of its runs one after the other.

    Args:
        others: seconds that pass during each run, as others compute on the same CPUs.
    """

    def __init__(self, others=NOTHING):
        self.now, self.lock, self.own = 50.0, threading.Lock(), threading.local()
        self.others = others

    def __call__(self):
        return self.now

    def busy(self):
        return getattr(self.own, "busy", 0.0)

    def run(self, seconds):
        with self.lock:
            self.now += seconds + next(self.others)
        self.own.busy = self.busy() + seconds


class Timed:
    """An engine of which a batch takes `base + slope · items` seconds."""

    def __init__(self, clock, base, slope):
        self.clock, self.base, self.slope = clock, base, slope
        self.sizes = []

    def run(self, batch):
        self.clock.run(self.base + self.slope * len(batch))
        self.sizes.append(len(batch))
        return [batch]


@pytest.fixture
def clock():
    return Clock()


def measured(clock, narrow, wide, cpus=2):
    opened = []

    def open_wide():
        opened.append(Timed(clock, *wide))
        return opened[-1]

    engine = Timed(clock, *narrow)
    plan, chosen = measure(
        engine, open_wide, [(3,)], SIZES, cpus=cpus, clock=clock, busy=clock.busy
    )
    assert chosen is (engine if plan.threads == 1 else opened[0])
    return plan, engine


def test_where_a_batch_costs_what_its_items_cost_batches_stay_small(clock):
    plan, _ = measured(clock, (0.0, 0.001), (0.0, 0.00095))
    assert plan == CpuTuning(1, 2, 1)


def test_where_a_batch_costs_what_one_item_costs_the_largest_is_best(clock):
    plan, _ = measured(clock, (0.002, 0.0), (0.004, 0.0))
    assert plan == CpuTuning(1, 2, 8)


def test_one_batch_on_all_cpus_is_taken_where_it_clearly_wins(clock):
    plan, _ = measured(clock, (0.004, 0.0001), (0.001, 0.0001))
    assert plan == CpuTuning(2, 1, 8)


def test_larger_sizes_are_not_tried_once_the_rate_falls(clock):
    class Thrashing(Timed):
        def run(self, batch):
            self.slope = 0.001 if len(batch) <= 2 else 0.01
            return super().run(batch)

    engine = Thrashing(clock, 0.001, 0.001)
    options = {"cpus": 1, "clock": clock, "busy": clock.busy}
    plan, _ = measure(engine, lambda: engine, [(3,)], SIZES, **options)
    assert plan == CpuTuning(1, 1, 2)
    assert max(engine.sizes) == 4


@pytest.mark.parametrize("base", [0.0001, 0.01, 0.5, 4.0])
def test_it_ends_in_time_whatever_the_model_costs(clock, base):
    """After so many runs, or 0.2 seconds, of computing; what was begun is ended."""
    began = clock()
    measured(clock, (base, base / 100), (base, base / 100))
    longest = 2 * (base + 8 * base / 100)
    assert clock() - began <= 2 * max(0.2, 21.1 * base) + 2 * longest


def test_it_ends_in_time_even_if_others_leave_it_hardly_any():
    clock = Clock(itertools.repeat(1.0))
    began = clock()
    plan, _ = measured(clock, (0.01, 0.0), (0.01, 0.0))
    assert clock() - began <= 10
    assert plan.threads == 1


@pytest.mark.parametrize("seed", range(5))
def test_what_others_compute_meanwhile_does_not_change_the_size(seed):
    rng = random.Random(seed)
    clock = Clock(iter(lambda: rng.random() ** 4 / 10, None))
    plan, _ = measured(clock, (0.002, 0.0004), (0.002, 0.0004))
    assert plan == CpuTuning(1, 2, 8)


def test_all_cpus_for_one_batch_have_to_win_on_the_clock_as_well(clock):
    """The thread that waits for the others of its inference computes less than it takes."""

    class Waiting(Timed):
        def run(self, batch):
            self.clock.now += 0.01
            return super().run(batch)

    wide = Waiting(clock, 0.001, 0.0)
    options = {"cpus": 2, "clock": clock, "busy": clock.busy}
    plan, _ = measure(Timed(clock, 0.004, 0.0), lambda: wide, [(3,)], SIZES, **options)
    assert plan == CpuTuning(1, 2, 8)
    assert wide.sizes


def test_a_single_cpu_has_no_choice_of_threads(clock):
    plan, _ = measured(clock, (0.002, 0.0), (0.0, 0.0), cpus=1)
    assert plan == CpuTuning(1, 1, 8)


def test_a_real_model_gets_a_plan_that_can_be_followed(tmp_path):
    path = dense(tmp_path / "model.onnx", 64, 256, 32)
    plan, engine = measure(OnnxEngine(path), lambda: OnnxEngine(path, 2), [(64,)], SIZES, cpus=2)
    assert (plan.threads, plan.runs) in {(1, 2), (2, 1)}
    assert plan.size in SIZES
    assert engine.run(np.zeros((plan.size, 64), np.float32))[0].shape == (plan.size, 32)


class TestKept:
    @pytest.fixture
    def kept(self, tmp_path):
        return TuningFile.of(tmp_path, "ab12", 2, SIZES)

    def test_there_is_nothing_at_first(self, kept):
        assert kept.load() is None

    def test_what_was_saved_is_found_again(self, kept, tmp_path):
        kept.save(CpuTuning(1, 2, 8))
        assert TuningFile.of(tmp_path, "ab12", 2, SIZES).load() == CpuTuning(1, 2, 8)
        assert [each.name for each in kept.path.parent.iterdir()] == [kept.path.name]

    @pytest.mark.parametrize("other", [("cd34", 2, SIZES), ("ab12", 4, SIZES), ("ab12", 2, (1, 2))])
    def test_another_model_machine_or_choice_has_its_own(self, kept, tmp_path, other):
        kept.save(CpuTuning(1, 2, 8))
        assert TuningFile.of(tmp_path, *other).load() is None

    def test_another_kind_of_cpu_has_its_own(self, kept, tmp_path, monkeypatch):
        kept.save(CpuTuning(1, 2, 8))
        monkeypatch.setattr(tuning, "cpu_features", lambda: "abacus")
        assert TuningFile.of(tmp_path, "ab12", 2, SIZES).load() is None

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            '{"threads": 1, "runs": 2}',
            '{"threads": 0, "runs": 1, "size": 1}',
            '{"threads": "1", "runs": 1, "size": 1}',
        ],
    )
    def test_nonsense_is_no_plan(self, kept, text):
        kept.path.parent.mkdir()
        kept.path.write_text(text)
        assert kept.load() is None

    def test_a_store_that_cannot_be_written_keeps_nothing_and_is_no_failure(self, tmp_path):
        (tmp_path / "file").write_text("")
        kept = TuningFile.of(tmp_path / "file", "ab12", 2, SIZES)
        kept.save(CpuTuning(1, 2, 8))
        assert kept.load() is None
