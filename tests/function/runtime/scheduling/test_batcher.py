"""Many threads share one engine: same results, own errors, the right order, nothing lost."""

from __future__ import annotations

import contextvars
import math
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function import request_context
from function.problems import AbandonedError, DeadlinePassedError, Problem
from function.request_context import Lane, RequestContext
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.engine import Ports
from function.runtime.sanity import WrongResultError
from function.runtime.scheduling.batcher import Batcher
from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.observer import Unobserved
from function.runtime.scheduling.permits import ComputePermits
from tests.graphs import dense, joined, rows
from warmup.plans.nvml import GpuMemory

WIDTH = 16
POISON, BREAK = -1.0, -2.0  # in a row: its result is no number; the whole batch fails
PATIENCE_S = 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return OnnxEngine(dense(tmp_path_factory.mktemp("model") / "model.onnx", WIDTH, 64, 8))


class Sabotaged:
    """A real engine in which rows can be bad, memory can end, and a batch can be held up."""

    def __init__(self, engine):
        self.engine = engine
        self.provider = engine.provider
        self.items = engine.items
        self.sizes = []
        self.first = []  # the first value of every row of every batch
        self.memory = math.inf
        self.go, self.begun = threading.Event(), threading.Semaphore(0)
        self.go.set()

    def run(self, batch):
        self.sizes.append(len(batch))
        self.first.append(batch[:, 0].tolist())
        self.begun.release()
        assert self.go.wait(PATIENCE_S)
        if len(batch) > self.memory:
            raise RuntimeError("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate 9")
        if (batch == BREAK).any():
            raise ValueError(f"cannot digest {batch[batch == BREAK].size} rows")
        outputs = [output.copy() for output in self.engine.run(batch)]
        outputs[0][(batch == POISON).any(axis=1)] = np.nan
        return outputs


class Counted(Unobserved):
    def __init__(self):
        self.items, self.waits, self.counts = Counter(), [], Counter()

    def waited(self, where, lane, seconds):
        self.waits.append((where, lane, seconds))

    def batched(self, stage, items):
        self.items[items] += 1

    def dropped(self, stage):
        self.counts["dropped"] += 1

    def bisected(self, stage):
        self.counts["bisected"] += 1


@pytest.fixture
def engine(model):
    return Sabotaged(model)


@pytest.fixture
def permits():
    permits = ComputePermits(2)
    permits.observer = Counted()
    return permits


@pytest.fixture
def batcher(engine, permits):
    return make(engine, permits)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(64) as pool:
        yield pool


def make(engine, permits, sizes=(1, 4, 8), *, pads=False, runs=1, **options):
    return Batcher("model", engine, permits, runs=runs, buckets=Buckets(sizes, pads), **options)


def call(batcher, batch, lane=Lane.STANDARD, deadline=math.inf, its=None):
    """Run for somebody, as a job with a permit would."""
    token = request_context.current.set(its or RequestContext(lane, deadline))
    try:
        with batcher._permits.held():
            return batcher.run(batch)
    finally:
        request_context.current.reset(token)


def numbered(number, count=1):
    """Rows that differ from all others."""
    batch = rows(count, WIDTH, number)
    batch[:, 0] = number
    return batch


def held_up(pool, batcher, engine, *waiting):
    """Futures of calls that all wait, in this order, while one batch is held up."""
    engine.go.clear()
    futures = [pool.submit(call, batcher, numbered(0))]
    assert engine.begun.acquire(timeout=PATIENCE_S)
    for number, arguments in enumerate(waiting, 1):
        before = len(batcher._queue)
        futures.append(pool.submit(call, batcher, **{"batch": numbered(number), **arguments}))
        wait_until(lambda before=before: len(batcher._queue) > before)
    return futures


def step(permits, pool):
    """Gives an event; until it is set, or the generator ended, a step of another holds a permit."""
    began, end = threading.Event(), threading.Event()

    def hold():
        with permits.held():
            began.set()
            assert end.wait(PATIENCE_S)

    pool.submit(hold)
    assert began.wait(PATIENCE_S)
    yield end
    end.set()


def wait_until(true):
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_lone_caller_runs_its_rows_as_they_are(batcher, engine, model):
    batch = numbered(3, 2)
    np.testing.assert_array_equal(call(batcher, batch)[0], model.run(batch)[0])
    assert engine.sizes == [2]


@pytest.mark.parametrize("runs", [1, 2, None])
@pytest.mark.parametrize("pads", [False, True])
def test_64_threads_get_what_each_would_get_alone(engine, permits, model, pool, runs, pads):
    batcher = make(engine, permits, pads=pads, runs=runs, window=0.002)
    rng = random.Random(5)

    def client(number):
        for step in range(20):
            batch = numbered(number * 100 + step, 1 + (number + step) % 11)
            lane = rng.choice(list(Lane))
            np.testing.assert_array_equal(call(batcher, batch, lane)[0], model.run(batch)[0])

    list(pool.map(client, range(64)))
    assert max(engine.sizes) == 8
    if pads:
        assert set(engine.sizes) <= {1, 4, 8} if runs else True
    assert (len(batcher._queue), batcher._busy, batcher._called) == (0, 0, None)
    assert permits.taken == 0
    items = sum(size * times for size, times in permits.observer.items.items())
    assert items == sum(1 + (n + step) % 11 for n in range(64) for step in range(20))


def test_what_waits_while_a_batch_runs_is_the_next_batch(pool, batcher, engine, permits):
    futures = held_up(pool, batcher, engine, *[{}] * 7)
    engine.go.set()
    for number, future in enumerate(futures):
        expected = engine.engine.run(numbered(number))[0]
        np.testing.assert_array_equal(future.result(PATIENCE_S)[0], expected)
    assert engine.sizes == [1, 7]
    where, _, seconds = zip(*permits.observer.waits, strict=True)
    assert where.count("batch") == 7 + 1
    assert min(seconds) >= 0


def test_where_only_warmed_sizes_may_run_a_batch_is_filled_up(pool, model, permits):
    engine = Sabotaged(model)
    batcher = make(engine, permits, pads=True)
    for size in (1, 8) * 100:
        batcher.cost.observe(size, 1.0)  # a batch costs the same, whatever its size
    futures = held_up(pool, batcher, engine, *[{}] * 3)
    engine.go.set()
    for future in futures:
        future.result(PATIENCE_S)
    assert engine.sizes == [1, 4]
    assert engine.first[1][3] == 0


def test_while_a_device_runs_a_batch_its_thread_lets_others_come_to_the_next_one(pool, model):
    engine, permits = Sabotaged(model), ComputePermits(1)
    engine.provider = "CUDAExecutionProvider"
    batcher = make(engine, permits)
    engine.go.clear()
    busy = pool.submit(call, batcher, numbered(1))
    assert engine.begun.acquire(timeout=PATIENCE_S)
    with permits.held():
        assert not busy.done()
    assert permits.watch.longest_s > 0  # but whether it hangs is watched
    engine.go.set()
    busy.result(PATIENCE_S)
    assert permits.watch.longest_s == 0


def test_the_urgent_go_first_and_in_a_lane_the_earliest_deadline(pool, engine, permits):
    batcher = make(engine, permits, sizes=(1,))
    soon, later = time.monotonic() + 30, time.monotonic() + 50
    futures = held_up(
        pool,
        batcher,
        engine,
        {"lane": Lane.BULK},
        {"deadline": later},
        {"deadline": soon},
        {"lane": Lane.INTERACTIVE},
    )
    engine.go.set()
    for future in futures:
        future.result(PATIENCE_S)
    assert engine.first == [[0], [4], [3], [2], [1]]


@pytest.mark.parametrize(("base", "shared"), [(1.0, 8), (0.08, 6), (0.0, 2)])
def test_others_share_an_interactive_batch_as_far_as_they_do_not_double_its_time(
    pool, batcher, engine, base, shared
):
    for size in (1, 8) * 10:
        batcher.cost.observe(size, base + 0.02 * size)
    batcher.cost.observe = lambda *_: None
    bulk = [{"lane": Lane.BULK}] * 9
    futures = held_up(pool, batcher, engine, *bulk, {"lane": Lane.INTERACTIVE})
    engine.go.set()
    wait(futures, PATIENCE_S)
    assert 10 in engine.first[1]
    assert len(engine.first[1]) == shared
    assert sum(engine.sizes) == 11


def test_a_member_that_is_too_large_is_run_in_parts(pool, batcher, engine, model):
    batch = numbered(1, 21)
    np.testing.assert_array_equal(call(batcher, batch)[0], model.run(batch)[0])
    assert engine.sizes == [8, 8, 5]


def test_each_input_is_batched_for_itself_in_the_order_that_was_asked_for(pool, permits, tmp_path):
    path = joined(tmp_path / "model.onnx", WIDTH)
    batcher = make(OnnxEngine(path, ports=Ports(("right", "left"))), permits, sizes=(4,), pads=True)

    def work(number):
        left, right = rows(3, WIDTH, number), rows(3, WIDTH, 99 - number)
        with permits.held():
            return left, right, batcher.run(right, left)

    for left, right, (product, difference) in pool.map(work, range(1, 40)):
        np.testing.assert_array_equal(product, left * right)
        np.testing.assert_array_equal(difference, left - right)


def test_a_graph_with_other_inputs_than_its_familys_is_refused(tmp_path):
    path = joined(tmp_path / "model.onnx", WIDTH)
    with pytest.raises(ValueError, match=r"model\.onnx has the inputs \('left', 'right'\), not"):
        OnnxEngine(path, ports=Ports(("left", "middle")))


@pytest.mark.parametrize("runs", [1, None])
def test_an_engine_that_takes_one_item_gets_one_at_a_time(permits, tmp_path, runs):
    one = OnnxEngine(dense(tmp_path / "one.onnx", WIDTH, 8, batch=1))
    assert one.items == 1
    batch = numbered(1, 3)
    batcher = make(one, permits, sizes=(1,), runs=runs)
    expected = np.concatenate([one.run(row[None])[0] for row in batch])
    np.testing.assert_array_equal(call(batcher, batch)[0], expected)


def test_rows_of_different_shapes_are_not_mixed(pool, permits, model):
    class AnyWidth(Sabotaged):
        def run(self, batch):
            self.sizes.append(batch.shape)
            self.begun.release()
            assert self.go.wait(PATIENCE_S)
            return [batch.sum(axis=1)]

    engine = AnyWidth(model)
    batcher = make(engine, permits)
    wide = np.ones((1, 2 * WIDTH), np.float32)
    held_up(pool, batcher, engine, {}, {"batch": wide}, {}, {"batch": wide})
    engine.go.set()
    wait_until(lambda: len(engine.sizes) == 3)
    assert sorted(engine.sizes) == [(1, 16), (2, 16), (2, 32)]


class TestFailures:
    def test_a_member_that_breaks_a_batch_alone_has_the_error(self, pool, batcher, engine, permits):
        bad = numbered(4)
        bad[0, 1] = BREAK
        futures = held_up(pool, batcher, engine, {}, {}, {}, {"batch": bad}, {}, {}, {})
        engine.go.set()
        for number, future in enumerate(futures):
            if number == 4:
                with pytest.raises(ValueError, match="cannot digest 1 rows"):
                    future.result(PATIENCE_S)
            else:
                expected = engine.engine.run(numbered(number))[0]
                np.testing.assert_array_equal(future.result(PATIENCE_S)[0], expected)
        assert permits.observer.counts["bisected"] == 3
        np.testing.assert_array_equal(
            call(batcher, numbered(9))[0], engine.engine.run(numbered(9))[0]
        )

    def test_a_result_that_is_no_number_is_its_members_own(self, pool, batcher, engine):
        bad = numbered(2)
        bad[0, 1] = POISON
        futures = held_up(pool, batcher, engine, {}, {"batch": bad}, {})
        engine.go.set()
        with pytest.raises(WrongResultError, match="model gives values that are not finite"):
            futures[2].result(PATIENCE_S)
        for number in (0, 1, 3):
            expected = engine.engine.run(numbered(number))[0]
            np.testing.assert_array_equal(futures[number].result(PATIENCE_S)[0], expected)
        assert engine.sizes == [1, 3]  # nothing has to run again

    @pytest.mark.parametrize("runs", [1, None])
    def test_a_large_member_ends_with_its_first_error(self, engine, permits, runs):
        batcher = make(engine, permits, runs=runs)
        bad = numbered(1, 24)
        bad[9, 1] = BREAK
        with pytest.raises(ValueError, match="cannot digest"):
            call(batcher, bad)
        assert engine.sizes == [8, 8]
        assert len(batcher._queue) == 0

    def test_an_engine_that_gives_too_few_outputs_is_wrong(self, permits, model):
        class Short(Sabotaged):
            def run(self, batch):
                return [batch[:-1]]

        with pytest.raises(RuntimeError, match="not one output for each of 2 items"):
            call(make(Short(model), permits), numbered(1, 2))


class TestMemory:
    def test_a_batch_that_is_too_large_is_halved_and_the_limit_is_remembered(
        self, pool, batcher, engine
    ):
        engine.memory = 4
        futures = held_up(pool, batcher, engine, *[{}] * 8)
        engine.go.set()
        for number, future in enumerate(futures):
            expected = engine.engine.run(numbered(number))[0]
            np.testing.assert_array_equal(future.result(PATIENCE_S)[0], expected)
        assert engine.sizes == [1, 8, 4, 4]
        assert batcher.cap == 4
        call(batcher, numbered(1, 8))
        assert engine.sizes == [1, 8, 4, 4, 4, 4]

    @pytest.mark.parametrize("runs", [1, None])
    def test_what_does_not_fit_at_all_is_a_503(self, engine, permits, runs):
        batcher = make(engine, permits, runs=runs)
        engine.memory = 0
        with pytest.raises(Problem, match="too little memory") as caught:
            call(batcher, numbered(1))
        assert (caught.value.kind.status, caught.value.headers) == (503, {"Retry-After": "1"})
        assert engine.sizes == [1, 1]
        engine.memory = 9
        call(batcher, numbered(1))

    def test_the_cap_stays_a_size_that_was_warmed(self, model, permits):
        engine = Sabotaged(model)
        batcher = make(engine, permits, sizes=(1, 3, 8), pads=True)
        engine.memory = 3
        call(batcher, numbered(1, 8))
        assert batcher.cap == 3
        assert engine.sizes == [8, 3, 3, 3]

    def test_a_larger_size_is_tried_again_when_memory_has_become_more(self, model, permits):
        state = {"now": 100.0, "free": 1}
        engine = Sabotaged(model)
        batcher = make(engine, permits, clock=lambda: state["now"])
        batcher._memory = lambda: GpuMemory(state["free"], 100)
        engine.memory = 1
        with pytest.raises(Problem):
            call(batcher, numbered(1, 8))  # eight, then four, and then it is given up
        assert batcher.cap == 1
        engine.memory = math.inf
        for now, free, cap in ((150.0, 50, 1), (170.0, 50, 4), (180.0, 50, 4), (240.0, 50, 8)):
            state |= {"now": now, "free": free}
            call(batcher, numbered(1, 8))
            assert batcher.cap == cap


class TestAbandoned:
    @pytest.mark.parametrize("runs", [1, None])
    def test_what_nobody_waits_for_is_never_run(self, engine, permits, runs):
        batcher = make(engine, permits, runs=runs)
        its = RequestContext(Lane.STANDARD, abandoned=True)
        token = request_context.current.set(its)
        try:
            with pytest.raises(Problem):
                batcher.run(numbered(1))
        finally:
            request_context.current.reset(token)
        assert engine.sizes == []
        assert permits.observer.counts == {"dropped": 1}

    def test_who_goes_while_waiting_leaves_the_batch(self, pool, batcher, engine, permits):
        its = [RequestContext(Lane.STANDARD) for _ in range(6)]
        futures = held_up(pool, batcher, engine, *({"its": each} for each in its))
        its[1].abandoned = its[4].abandoned = True
        engine.go.set()
        for number, future in enumerate(futures):
            if number in (2, 5):
                with pytest.raises(Problem):
                    future.result(PATIENCE_S)
            else:
                future.result(PATIENCE_S)
        assert engine.first == [[0], [1, 3, 4, 6]]
        assert permits.observer.counts["dropped"] == 2
        assert permits.taken == 0

    def test_a_deadline_that_passes_is_one_members_own(self, pool, batcher, engine, permits):
        futures = held_up(
            pool, batcher, engine, {"deadline": time.monotonic() + 0.15}, {"deadline": math.inf}
        )
        time.sleep(0.2)
        engine.go.set()
        with pytest.raises(Problem, match="no time left"):
            futures[1].result(PATIENCE_S)
        futures[2].result(PATIENCE_S)
        assert engine.first == [[0], [2]]


class TestWindow:
    """With two runs, of which one is busy, a batch could start on the other one."""

    WINDOW = 0.3

    @pytest.fixture
    def permits(self):
        return ComputePermits(3)

    @pytest.fixture
    def batcher(self, engine, permits):
        return make(engine, permits, runs=2, window=self.WINDOW)

    @pytest.fixture(autouse=True)
    def other(self, permits, pool):
        """Ends a step that holds one of the permits, and might come to the batch after it."""
        yield from step(permits, pool)

    def began(self, pool, batcher, engine, *calls):
        """Seconds until the second batch began; its rows."""
        engine.go.clear()
        pool.submit(call, batcher, numbered(0))
        assert engine.begun.acquire(timeout=PATIENCE_S)
        began = time.monotonic()
        for number, lane in enumerate(calls, 1):
            before = len(batcher._queue)
            pool.submit(call, batcher, numbered(number), lane)
            wait_until(lambda b=before: len(batcher._queue) > b or len(engine.first) > 1)
        assert engine.begun.acquire(timeout=PATIENCE_S)
        took = time.monotonic() - began
        engine.go.set()
        return took, engine.first[1]

    def test_it_waits_for_others_as_long_as_the_window(self, pool, batcher, engine):
        took, first = self.began(pool, batcher, engine, *[Lane.STANDARD, Lane.BULK, Lane.STANDARD])
        assert took >= self.WINDOW
        assert sorted(first) == [1, 2, 3]

    def test_a_full_batch_does_not(self, pool, batcher, engine):
        _, first = self.began(pool, batcher, engine, *[Lane.BULK] * 8)
        assert sorted(first) == list(range(1, 9))

    def test_an_interactive_row_does_not_and_takes_the_others_with_it(self, pool, batcher, engine):
        _, first = self.began(pool, batcher, engine, Lane.BULK, Lane.INTERACTIVE)
        assert sorted(first) == [1, 2]
        assert len(engine.sizes) == 2

    def test_where_batching_gains_nothing_nobody_waits(self, pool, batcher, engine):
        for size in (1, 8) * 20:
            batcher.cost.observe(size, 0.001 * size)
        batcher._window = 1000.0
        took, first = self.began(pool, batcher, engine, Lane.BULK)
        assert (took < 100, first) == (True, [1])

    def test_where_nobody_else_could_come_it_does_not(self, pool, batcher, engine, other):
        other.set()
        wait_until(lambda: batcher._permits.taken == 0)
        batcher._window = 1000.0
        took, first = self.began(pool, batcher, engine, Lane.STANDARD)
        assert (took < 100, first) == (True, [1])

    def test_it_does_not_once_nobody_else_can_come(self, pool, batcher, engine, other):
        engine.go.clear()
        pool.submit(call, batcher, numbered(0))
        assert engine.begun.acquire(timeout=PATIENCE_S)
        batcher._window = 1000.0
        waiting = pool.submit(call, batcher, numbered(1))
        wait_until(lambda: len(batcher._queue) == 1)
        other.set()
        assert engine.begun.acquire(timeout=PATIENCE_S)  # on the second of the runs
        engine.go.set()
        waiting.result(PATIENCE_S)

    def test_an_idle_device_does_not(self, pool, batcher, engine):
        batcher._on_cpu = False
        engine.go.clear()
        pool.submit(call, batcher, numbered(0))
        assert engine.begun.acquire(timeout=PATIENCE_S)
        waiting = pool.submit(call, batcher, numbered(1))
        wait_until(lambda: len(batcher._queue) == 1)
        batcher._window = math.inf  # only the end of the first batch can start the second
        engine.go.set()
        waiting.result(PATIENCE_S)


class TestWhileAllPermitsAreTaken:
    """The CPUs are busy with other steps, so that a batch that waits for more holds nobody up."""

    @pytest.fixture
    def permits(self):
        return ComputePermits(1)

    @pytest.fixture
    def batcher(self, engine, permits):
        batcher = make(engine, permits, sizes=(1, 4), runs=2, window=0.001)
        batcher.cost.observe(1, 20.0)
        batcher.cost.observe(4, 20.0)  # so a full batch saves a minute
        return batcher

    @pytest.fixture
    def taken(self, permits, pool):
        """Ends the step that holds the only permit."""
        yield from step(permits, pool)

    def come(self, pool, batcher, count, lane=Lane.STANDARD):
        def member(number):
            request_context.current.set(RequestContext(lane))
            return batcher.run(numbered(number))

        return [pool.submit(contextvars.Context().run, member, number) for number in range(count)]

    def test_it_waits_until_one_is_free(self, pool, batcher, engine, taken):
        futures = self.come(pool, batcher, 3)
        assert not engine.begun.acquire(timeout=0.2)
        assert len(batcher._queue) == 3
        taken.set()
        wait(futures, PATIENCE_S)
        assert engine.sizes == [3]

    def test_a_full_one_starts(self, pool, batcher, engine, taken):
        wait(self.come(pool, batcher, 4), PATIENCE_S)
        assert engine.sizes == [4]

    def test_an_interactive_item_starts_it(self, pool, batcher, engine, taken):
        wait(self.come(pool, batcher, 1, Lane.INTERACTIVE), PATIENCE_S)
        assert engine.sizes == [1]

    def test_it_waits_no_longer_than_what_a_full_one_saves(self, pool, engine, permits, taken):
        batcher = make(engine, permits, sizes=(1, 4), runs=2, window=0.001)
        batcher.cost.observe(1, 0.02)
        batcher.cost.observe(4, 0.02)
        wait(self.come(pool, batcher, 1), PATIENCE_S)
        assert engine.sizes == [1]

    def test_without_a_window_it_does_not_wait(self, pool, batcher, engine, taken):
        batcher._window = 0.0
        wait(self.come(pool, batcher, 1), PATIENCE_S)
        assert engine.sizes == [1]


class TestOnACpu:
    """A batch is a step like any other: no more threads compute than there are permits."""

    @pytest.fixture
    def permits(self):
        return ComputePermits(1)

    @pytest.fixture
    def batcher(self, engine, permits):
        return make(engine, permits, sizes=(1, 4), runs=1, window=0.001)

    def queued(self, pool, permits, work, *arguments, **named):
        before = len(permits._queue)
        future = pool.submit(work, *arguments, **named)
        wait_until(lambda: len(permits._queue) > before)
        return future

    def test_a_batch_needs_a_permit(self, pool, batcher, engine, permits):
        engine.go.clear()
        running = pool.submit(call, batcher, numbered(1))
        assert engine.begun.acquire(timeout=PATIENCE_S)
        other = self.queued(pool, permits, call, batcher, numbered(2))
        assert (permits.taken, engine.sizes) == (1, [1])
        engine.go.set()
        wait([running, other], PATIENCE_S)
        assert (engine.sizes, permits.taken) == ([1, 1], 0)

    def test_the_last_who_can_come_runs_the_batch_for_all(self, pool, batcher, engine, permits):
        for size in (1, 4):
            batcher.cost.observe(size, 20.0)  # so a full batch saves a minute
        with permits.held():
            members = [self.queued(pool, permits, call, batcher, numbered(n)) for n in range(3)]
        wait(members, PATIENCE_S)
        assert engine.sizes == [3]

    def test_who_is_called_and_then_goes_leaves_the_batch_to_the_next(
        self, pool, batcher, engine, permits
    ):
        for size in (1, 4):
            batcher.cost.observe(size, 0.02)
        its, end = RequestContext(Lane.STANDARD), threading.Event()

        def step():
            request_context.current.set(RequestContext(Lane.BULK))
            with permits.held():
                assert end.wait(PATIENCE_S)

        with permits.held():
            goes = self.queued(pool, permits, call, batcher, numbered(1), its=its)
            stays = self.queued(pool, permits, call, batcher, numbered(2))
            other = self.queued(pool, permits, contextvars.Context().run, step)
        wait_until(lambda: batcher._called and permits.wanted)
        its.abandoned = True
        end.set()
        wait([other, stays], PATIENCE_S)
        with pytest.raises(Problem):
            goes.result(PATIENCE_S)
        assert engine.first == [[2]]
        assert (len(batcher._queue), batcher._busy, batcher._called) == (0, 0, None)
        assert permits.taken == 0


def test_a_batch_that_hangs_is_seen(pool, batcher, engine, permits):
    futures = held_up(pool, batcher, engine, {}, {})
    time.sleep(0.05)
    assert permits.watch.longest_s >= 0.05
    engine.go.set()
    for future in futures:
        future.result(PATIENCE_S)
    assert permits.watch.longest_s == 0


def test_the_cost_is_learned_from_the_batches(pool, batcher, engine):
    for count in (1, 8) * 5:
        call(batcher, numbered(count, count))
    assert batcher.cost.known
    assert 0 < batcher.cost.seconds(1) <= batcher.cost.seconds(8)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Lane)),
            st.integers(1, 12),
            st.sampled_from(["good", "good", "good", "bad", "poison", "gone", "late"]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([1, 2, None]),
    st.sampled_from([0.0, 0.001]),
    st.sampled_from([math.inf, 5]),
)
@settings(max_examples=40, deadline=None)
def test_whatever_happens_to_others_each_has_its_own_outcome(model, calls, runs, window, memory):
    """And no permit, run or row is left behind."""
    engine, permits = Sabotaged(model), ComputePermits(2)
    engine.memory = memory
    batcher = make(engine, permits, runs=runs, window=window)

    def one(number, lane, count, fate):
        batch = numbered(number, count)
        if fate == "bad":
            batch[-1, 1] = BREAK
        elif fate == "poison":
            batch[0, 1] = POISON
        its = RequestContext(lane, 0.0 if fate == "late" else math.inf, abandoned=fate == "gone")
        try:
            found = call(batcher, batch, its=its)[0]
        except (Problem, ValueError, WrongResultError) as error:
            return type(error)
        np.testing.assert_array_equal(found, model.run(batch)[0])
        return None

    outcomes = {
        "good": None,
        "bad": ValueError,
        "poison": WrongResultError,
        "gone": AbandonedError,
        "late": DeadlinePassedError,
    }
    with ThreadPoolExecutor(len(calls)) as pool:
        found = list(pool.map(one, range(len(calls)), *zip(*calls, strict=True)))
    assert found == [outcomes[fate] for *_, fate in calls]
    assert (len(batcher._queue), batcher._busy, batcher._called) == (0, 0, None)
    assert permits.taken == 0
    assert permits.watch.longest_s == 0
