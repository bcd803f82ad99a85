"""A replica that is told to stop just as a job ends: it ends at once, with no second cancel."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from dataclasses import replace

import pytest

from function import tasks
from function.background.jobs.files import FileBudget
from function.background.jobs.job import JobSpec, JobState
from function.background.jobs.redis_files import RedisJobFiles
from function.background.jobs.runner import JobRunner, RunnerSettings
from function.background.jobs.store import JOBS, JobStore
from function.background.redis_records import RedisRecords
from function.request_context import Lane
from function.requests import SwapResult
from function.storage.storage import Storage
from tests.function.live import COLLINS, FORM, HOPPER, multipart
from tests.function.raw import eventually
from tests.running import running

from .conftest import new_id

PROCESSES = int(os.environ.get("EMBER_TEST_STOPS", "3"))
"""How many processes are stopped; each takes some seconds to start."""
TIMES = 120
RESULT = SwapResult(b"result", "image/jpeg", (4, 3), faces=(1,), source=None, warnings=())
SPEC = JobSpec("a", "ann", "digest", "at", Lane.BULK, 1.5)


async def test_no_cancel_gets_lost_wherever_in_a_job_it_comes(lasting_redis, caplog):
    """From before its first word to Redis to after its last, and on from there."""
    rng, taken_s = random.Random(5), None
    for number in range(TIMES):
        began = asyncio.Event()

        async def swap(wanted, watch=None, began=began):
            began.set()
            return RESULT

        store = JobStore(RedisRecords(lasting_redis.url, 2.0, JOBS))
        runner = JobRunner(
            store,
            RedisJobFiles(lasting_redis.url, 2.0, FileBudget(10**7)),
            storage=Storage(),
            swap=swap,
            refund=lambda *_: None,
            lanes=lambda: list(Lane),
            settings=RunnerSettings(30, 3600, 2),
        )
        spec = replace(SPEC, id=str(number), at=f"at-{number}")
        for name in spec.inputs:
            await runner.files.put(name, b"photo", 60)
        task = asyncio.create_task(runner.run())
        await store.open(spec, 10**6, 60)
        runner.wake()
        if taken_s is None:
            since = time.monotonic()
            while (await store.get(spec.key)).state is not JobState.SUCCEEDED:
                await asyncio.sleep(0)
            taken_s = time.monotonic() - since
        else:
            await asyncio.sleep(rng.uniform(0, 1.5 * taken_s))
        await tasks.end(task)
        await runner.close(rng.choice([0.0, 0.001]))
    assert "a task has not ended and is cancelled again" not in caplog.messages


@pytest.mark.slow
def test_a_process_that_is_stopped_as_a_job_ends_exits_at_once(redis):
    """SIGTERM within 5 ms of the end of a job."""
    environ = {"EMBER_REDIS_URL": redis.url, "EMBER_REDIS_TIMEOUT_S": "2", "EMBER_THREADS": "1"}
    rng, body = random.Random(7), multipart(("source", HOPPER), ("target", COLLINS))
    ends = []
    for _ in range(PROCESSES):
        with running(**environ) as server:
            lasts = [lasted(server, body) for _ in range(3)]
            status, _, _ = server.send("PUT", f"/v1/jobs/{new_id()}", body, FORM)
            assert status == 201
            time.sleep(max(0.0, min(lasts) + rng.uniform(-0.005, 0.005)))
            server.process.terminate()
            began = time.monotonic()
            assert server.process.wait(60) == 0
            ends.append(time.monotonic() - began)
            messages = [event["message"] for event in server.events()]
            assert "a task has not ended and is cancelled again" not in messages
    print("\nseconds to end, the longest:", sorted(round(each, 3) for each in ends)[-10:])


def lasted(server, body):
    """How long a job took from the answer to its request to its end."""
    name, told = new_id(), {}
    server.send("PUT", f"/v1/jobs/{name}", body, FORM)
    began = time.monotonic()

    def ended():
        told.update(json.loads(server.send("GET", f"/v1/jobs/{name}")[2]))
        return told["state"] == "succeeded"

    eventually(ended, 60)
    return time.monotonic() - began
