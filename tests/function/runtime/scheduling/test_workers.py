"""Jobs run on threads, for whoever asked for them; those that nobody waits for never begin."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from function import request_context
from function.problems import Problem
from function.request_context import Lane, RequestContext
from function.runtime.scheduling.permits import ComputePermits
from function.runtime.scheduling.workers import Workers


@pytest.fixture
def permits():
    return ComputePermits(1)


@pytest.fixture
def workers(permits):
    workers = Workers(permits, 4)
    yield workers
    workers.close()


async def waiting(permits, count):
    while len(permits._queue) < count:
        await asyncio.sleep(0.001)


async def test_a_job_knows_for_whom_it_works(workers):
    request_context.current.set(context := RequestContext(Lane.BULK))
    assert await workers.run(request_context.current.get) is context


async def test_a_job_that_is_cancelled_before_it_has_a_permit_never_begins(workers, permits):
    begun = []
    with permits.held():
        gone, stays = (asyncio.create_task(workers.run(begun.append, n)) for n in range(2))
        await waiting(permits, 2)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
    await stays
    assert begun == [1]
    assert permits.taken == 0


async def test_one_thread_goes_from_job_to_job(workers, permits):
    with permits.held():
        jobs = [asyncio.create_task(workers.run(threading.get_ident)) for _ in range(5)]
        await waiting(permits, 5)
    assert len(set(await asyncio.gather(*jobs))) == 1


async def test_a_job_that_lends_its_permit_lets_another_begin(workers, permits):
    other = threading.Event()

    def waits():
        with permits.lent():
            return other.wait(20)

    assert await asyncio.gather(workers.run(waits), workers.run(other.set)) == [True, None]


async def test_an_error_is_that_of_the_job_and_the_permit_comes_back(workers, permits):
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    assert permits.taken == 0
    assert permits.watch.longest_s == 0


async def test_a_job_whose_deadline_passes_while_it_waits_is_refused(workers, permits):
    with permits.held():
        request_context.current.set(RequestContext(deadline=time.monotonic() + 0.01))
        job = asyncio.create_task(workers.run(int))
        await waiting(permits, 1)
        await asyncio.sleep(0.02)
    with pytest.raises(Problem, match="no time left"):
        await job


async def test_the_most_urgent_of_all_jobs_is_next(workers, permits):
    order = []

    async def ask(lane):
        request_context.current.set(RequestContext(lane))
        await workers.run(order.append, lane)

    with permits.held():
        jobs = []
        for number, lane in enumerate(reversed(Lane), 1):
            jobs.append(asyncio.create_task(ask(lane)))
            await waiting(permits, number)
    await asyncio.gather(*jobs)
    assert order == list(Lane)


async def test_closing_ends_what_waits_and_not_what_runs(workers, permits):
    begun, go = threading.Event(), threading.Event()

    def long():
        begun.set()
        return go.wait(20)

    runs = asyncio.create_task(workers.run(long))
    await asyncio.to_thread(begun.wait, 20)
    waits = asyncio.create_task(workers.run(int))
    await waiting(permits, 1)
    workers.close()
    with pytest.raises(Problem):
        await waits
    go.set()
    assert await runs
