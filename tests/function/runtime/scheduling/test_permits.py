"""As many threads compute as there are permits, the most urgent first, and no permit is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function import request_context
from function.problems import Problem
from function.request_context import Lane, RequestContext
from function.runtime.scheduling.permits import ComputePermits

PATIENCE_S = 20


@pytest.fixture
def permits():
    return ComputePermits(1)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(32) as pool:
        yield pool


def working(its, work, *args):
    """Do something for somebody."""
    token = request_context.current.set(its)
    try:
        return work(*args)
    finally:
        request_context.current.reset(token)


def wait_until(true):
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def queued(pool, permits, order, name, its):
    """A job that waits for a permit and then writes down its name."""

    def job():
        with permits.held():
            order.append(name)

    before = len(permits._queue)
    future = pool.submit(working, its, job)
    wait_until(lambda: len(permits._queue) > before)
    return future


def finish(futures):
    for future in futures:
        future.result(PATIENCE_S)


def test_no_more_threads_compute_than_there_are_permits(pool):
    permits, now, most, lock = ComputePermits(3), 0, 0, threading.Lock()

    def job(_):
        nonlocal now, most
        for _ in range(20):
            with permits.held():
                with lock:
                    now += 1
                    most = max(most, now)
                time.sleep(0.0005)
                with lock:
                    now -= 1

    list(pool.map(job, range(12)))
    assert (most, now, permits.taken) == (3, 0, 0)


def test_the_most_urgent_goes_first_and_then_the_earliest_deadline(pool, permits):
    order, later = [], time.monotonic() + 50
    with permits.held():
        futures = [
            queued(pool, permits, order, "bulk", RequestContext(Lane.BULK)),
            queued(pool, permits, order, "standard", RequestContext(Lane.STANDARD)),
            queued(pool, permits, order, "in a hurry", RequestContext(Lane.STANDARD, later)),
            queued(pool, permits, order, "interactive", RequestContext(Lane.INTERACTIVE)),
        ]
    finish(futures)
    assert order == ["interactive", "in a hurry", "standard", "bulk"]


def test_a_permit_that_is_lent_is_used_by_others_and_comes_back(pool, permits):
    order = []
    with permits.held():
        future = queued(pool, permits, order, "other", RequestContext())
        with permits.lent():
            future.result(PATIENCE_S)
        assert (order, permits.taken) == (["other"], 1)
    assert permits.taken == 0


def test_who_has_no_permit_can_lend_none(permits):
    with permits.lent():
        assert permits.taken == 0
    assert permits.taken == 0


def test_a_less_urgent_thread_gives_way_between_two_steps(pool, permits):
    order = []

    def bulk():
        with permits.held():
            future = queued(pool, permits, order, "interactive", RequestContext(Lane.INTERACTIVE))
            permits.give_way()
            order.append("bulk")
            future.result(PATIENCE_S)

    working(RequestContext(Lane.BULK), bulk)
    assert order == ["interactive", "bulk"]


@pytest.mark.parametrize("other", [Lane.STANDARD, Lane.BULK])
def test_nobody_gives_way_to_who_is_not_more_urgent(pool, permits, other):
    order = []

    def standard():
        with permits.held():
            future = queued(pool, permits, order, "other", RequestContext(other))
            permits.give_way()
            order.append("standard")
        future.result(PATIENCE_S)

    working(RequestContext(Lane.STANDARD), standard)
    assert order == ["standard", "other"]


@pytest.mark.parametrize(
    "its", [RequestContext(abandoned=True), RequestContext(deadline=0.0)], ids=["gone", "late"]
)
def test_work_that_is_abandoned_or_late_does_not_begin(permits, its):
    with pytest.raises(Problem):
        working(its, permits.held().__enter__)
    assert permits.taken == 0


def test_who_goes_while_waiting_never_begins(pool, permits):
    order, its = [], RequestContext()
    with permits.held():
        future = queued(pool, permits, order, "gone", its)
        other = queued(pool, permits, order, "other", RequestContext())
        its.abandoned = True
    with pytest.raises(Problem):
        future.result(PATIENCE_S)
    other.result(PATIENCE_S)
    assert (order, permits.taken) == (["other"], 0)


def test_who_goes_while_the_permit_is_lent_ends_there(pool, permits):
    its = RequestContext()

    def job():
        with permits.held():
            with permits.lent():
                its.abandoned = True
            pytest.fail("it went on")

    with pytest.raises(Problem):
        working(its, job)
    assert permits.taken == 0
    assert permits.watch.longest_s == 0


def test_closing_turns_away_who_waits(pool, permits):
    order = []
    with permits.held():
        futures = [queued(pool, permits, order, n, RequestContext()) for n in range(3)]
        permits.close()
        for future in futures:
            with pytest.raises(Problem):
                future.result(PATIENCE_S)
    assert (order, permits.taken) == ([], 0)


def test_waiting_is_not_computing(pool):
    """Only a thread with a permit can be stuck."""
    now = 100.0
    permits = ComputePermits(1, lambda: now)
    with permits.held():
        future = queued(pool, permits, [], "waits", RequestContext())
        now += 5
        assert permits.watch.longest_s == 5
        with permits.lent():
            future.result(PATIENCE_S)
            now += 9
            assert permits.watch.longest_s == 0
        now += 1
        assert permits.watch.longest_s == 1
    assert permits.watch.longest_s == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(list(Lane)), st.sampled_from(["ok", "fails", "gone", "lends"])),
        max_size=25,
    ),
    st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_permits_never_leak(jobs, total):
    permits, done = ComputePermits(total), []

    def one(job):
        lane, fate = job
        its = RequestContext(lane)

        def work():
            with permits.held():
                permits.give_way()
                if fate == "gone":
                    its.abandoned = True
                if fate in ("lends", "gone"):
                    with permits.lent():
                        time.sleep(0.0002)
                if fate == "fails":
                    raise ValueError(fate)
                done.append(job)

        with contextlib.suppress(ValueError, Problem):
            working(its, work)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, jobs))
    assert permits.taken == 0
    assert not permits.wanted
    assert sorted(done) == sorted(job for job in jobs if job[1] in ("ok", "lends"))
