"""A runner alone: what is tried again, given up, paid back and deleted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from function import tasks
from function.admission.account import Receipt
from function.background.in_memory import InMemoryRecords
from function.background.jobs.files import FileBudget, InMemoryJobFiles, JobFilesError
from function.background.jobs.job import JobSpec, JobState
from function.background.jobs.runner import JobRunner, RunnerSettings
from function.background.jobs.store import JOBS, JobStore
from function.background.records import RecordStoreError
from function.background.redis_records import RedisRecords
from function.problems import Problem
from function.request_context import Lane
from function.requests import SwapResult
from function.storage.storage import Storage


class TestTheRunner:
    """A runner alone, with a swap that the test makes."""

    @pytest.fixture(autouse=True)
    def _fresh(self):
        self.requests, self.refunds, self.failures = [], [], []
        self.storage = Storage()

    @pytest.fixture
    async def runner(self):
        runner = self.made()
        task = asyncio.create_task(runner.run())
        yield runner
        task.cancel()
        await runner.close(1)

    def made(self, store=None, files=None, lease_s=0.2, lanes=tuple(Lane)):
        async def swap(wanted, watch=None):
            self.requests.append(wanted)
            if self.failures:
                raise self.failures.pop(0)
            return RESULT

        return JobRunner(
            store or JobStore(InMemoryRecords()),
            files or InMemoryJobFiles(FileBudget(10**6)),
            storage=self.storage,
            swap=swap,
            refund=lambda *each: self.refunds.append(each),
            lanes=lambda: lanes,
            settings=RunnerSettings(lease_s, 3600, 2),
        )

    async def job(self, runner, **changes):
        prices, receipt = (3,), Receipt(2, 1, 0, 0)
        spec = JobSpec("a", "ann", "d", "at", Lane.BULK, 1.0, prices=prices, receipt=receipt)
        spec = replace(spec, **changes)
        for name in spec.inputs:
            await runner.files.put(name, b"photo", 60)
        await runner.store.open(spec, 10, 60)
        runner.wake()
        return spec

    async def test_a_runner_ends_though_it_is_woken_meanwhile(self):
        for turns in range(8):  # of the event loop, between what wakes them and their end
            runner = self.made()
            running = asyncio.create_task(runner.run())
            await asyncio.sleep(0.01)
            runner.wake()
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait({running}, timeout=5)
            assert running.cancelled()

    async def ended(self, runner, spec):
        for _ in range(600):
            job = await runner.store.get(spec.key)
            if not job.state.open:
                return job
            await asyncio.sleep(0.02)
        raise AssertionError("it never ended")

    async def test_a_target_that_fails_for_a_while_is_tried_again(self, runner):
        self.failures = [Problem("storage_unavailable", "not now")]
        job = await self.ended(runner, await self.job(runner))
        assert (job.state, len(self.requests)) == (JobState.SUCCEEDED, 2)
        assert self.refunds == []

    async def test_the_swap_gets_all_that_the_request_said(self, runner):
        options = {"faces": "index:1", "format": "webp", "quality": 7, "enhance": 3, "weight": 60}
        await self.ended(runner, await self.job(runner, sources=2, like=1, options=options))
        (wanted,) = self.requests
        assert [each.field for each in wanted.sources] == ["source", "source"]
        assert [each.data for each in (wanted.target, *wanted.likes)] == [b"photo", b"photo"]
        assert (wanted.format, wanted.quality, wanted.faces.named) == ("webp", 7, 1)
        assert (wanted.options.enhance, wanted.options.weight) == (3, 0.6)

    async def test_the_swap_gets_the_names_of_all_people(self, runner):
        names = {"source": ["a", "b", "a"], "like": ["x", "y"]}
        options = {"faces": "0=a,x=b,y=a", "names": names}
        spec = await self.job(runner, sources=3, like=2, options=options)
        assert JobSpec.parse(spec.text()) == spec
        await self.ended(runner, spec)
        (wanted,) = self.requests
        assert [each.name for each in wanted.sources] == ["a", "b", "a"]
        assert [each.name for each in wanted.likes] == ["x", "y"]
        assert len({*spec.inputs}) == 6
        wanted.faces.check(["a", "b"], ["x", "y"])

    async def test_a_target_that_is_done_is_not_done_again(self, runner):
        self.failures = [Problem("storage_unavailable", "not now")]
        spec = await self.job(runner, targets=3, prices=(1, 1, 1), receipt=Receipt(3, 0, 0, 0))
        job = await self.ended(runner, spec)
        assert job.state is JobState.SUCCEEDED
        assert len(self.requests) == 4  # three, and the one that failed

    async def test_a_job_that_ended_every_worker_is_given_up_and_paid_back(self):
        """Unless it was started."""
        clock = [10**6]
        runner = self.made(store=JobStore(InMemoryRecords(lambda: clock[0])))
        spec = await self.job(runner)
        for _ in range(5):
            assert await runner.store.take(list(Lane), 1)
            clock[0] += 2000
        task = asyncio.create_task(runner.run())
        job = await self.ended(runner, spec)
        assert (job.state, self.requests) == (JobState.FAILED, [])
        assert job.items[0].problem["code"] == "internal"
        assert self.refunds == [("ann", Receipt(2, 1, 0, 0))]
        task.cancel()
        await runner.close(1)

    async def test_inputs_are_deleted_when_a_job_ends_and_results_when_its_time_is_over(self):
        clock = [10**6]
        runner = self.made(store=JobStore(InMemoryRecords(lambda: clock[0])))
        spec = await self.job(runner)
        task = asyncio.create_task(runner.run())
        await self.ended(runner, spec)
        await asyncio.sleep(0.05)
        assert runner.files.held == len(RESULT.image)
        task.cancel()
        clock[0] += 3600 * 1000 + 1
        task = asyncio.create_task(runner.run())
        for _ in range(100):
            if await runner.store.get(spec.key) is None:
                break
            await asyncio.sleep(0.02)
        assert await runner.store.get(spec.key) is None
        assert runner.files.held == 0
        task.cancel()
        await runner.close(1)

    @pytest.mark.parametrize("where", ["memory", "redis"])
    @pytest.mark.parametrize("outputs", [(), ("gs://swapped/jobs/late.jpg",)])
    async def test_a_store_that_is_silent_for_longer_than_a_lease_has_the_whole_end(
        self, cloud, redis, where, outputs
    ):
        """What was done is told with the end, though the target could not be marked."""
        records = InMemoryRecords() if where == "memory" else RedisRecords(redis.url, 5.0, JOBS)
        store = Silent(records)
        runner = self.made(store=store, lease_s=0.3)
        task = asyncio.create_task(runner.run())
        job = await self.ended(runner, await self.job(runner, outputs=outputs))
        assert store.failed
        assert job.state is JobState.SUCCEEDED
        assert [item.state for item in job.items] == [JobState.SUCCEEDED]
        assert job.items[0].result["media_type"] == "image/jpeg"
        await tasks.end(task)
        await runner.close(10)
        await self.storage.close()

    async def test_a_photo_that_cannot_be_deleted_keeps_no_other_job(self, caplog):
        clock = [10**6]
        store, files = JobStore(InMemoryRecords(lambda: clock[0])), Sticky(FileBudget(10**6))
        runner = self.made(store, files, lanes=())
        first, second = await self.job(runner), await self.job(runner, id="b", at="other")
        runner.files.stuck = set(first.inputs)
        clock[0] += 61_000
        for job in (await runner.end(second.key), await runner.store.end(first.key, 1)):
            assert job
        clock[0] += 3600 * 1000 + 1
        await runner.sweep()
        assert await runner.store.get(second.key) is None
        assert await runner.store.get(first.key) is not None
        assert "cannot be deleted" in caplog.text
        runner.files.stuck = set()
        await runner.sweep()
        assert await runner.store.get(first.key) is None
        await runner.close(1)

    async def test_a_job_that_is_over_before_it_has_begun_is_cancelled_and_paid_back(self):
        clock = [10**6]
        runner = self.made(store=JobStore(InMemoryRecords(lambda: clock[0])), lanes=())
        spec = await self.job(runner)
        clock[0] += 61_000
        task = asyncio.create_task(runner.run())
        assert (await self.ended(runner, spec)).state is JobState.CANCELLED
        assert self.refunds == [("ann", Receipt(2, 1, 0, 0))]
        assert runner.files.held == 0
        task.cancel()
        await runner.close(1)


class Silent(JobStore):
    """A store that takes no mark of a target that is done."""

    failed = 0

    async def mark(self, key, token, place, item):
        if item.state is JobState.SUCCEEDED:
            self.failed += 1
            raise RecordStoreError("silent")
        return await super().mark(key, token, place, item)


class Sticky(InMemoryJobFiles):
    """Files of which some cannot be deleted."""

    stuck = frozenset()

    async def drop(self, names):
        if self.stuck.intersection(names):
            raise JobFilesError("it sticks")
        await super().drop(names)


RESULT = SwapResult(b"result", "image/jpeg", (4, 3), faces=(1,), source=None, warnings=())


def test_a_receipt_gives_back_granted_tokens_first():
    receipt = Receipt(allowed=5, granted=2, ends=7, hour=9)
    assert receipt.part(1) == Receipt(0, 1, 7, 9)
    assert receipt.part(4) == Receipt(2, 2, 7, 9)
    assert receipt.part(7) == receipt
