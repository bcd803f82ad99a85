"""What is being worked on, by its key."""

from __future__ import annotations

import asyncio
import contextlib

from function import tasks
from function.tasks import Running


async def test_what_is_begun_anew_is_still_known_when_the_first_has_ended():
    running, slow = Running[None](), asyncio.Event()
    first = running.begin("job", asyncio.sleep(0))
    again = running.begin("job", slow.wait())
    await first
    await asyncio.sleep(0)
    assert running["job"] is again
    slow.set()
    await again
    await asyncio.sleep(0)
    assert "job" not in running


async def test_a_task_that_loses_its_cancel_is_ended_all_the_same(monkeypatch, caplog):
    monkeypatch.setattr(tasks, "_AGAIN_S", 0.01)

    async def deaf():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    await asyncio.wait_for(tasks.end(task), 5)
    assert task.cancelled()
    assert caplog.messages == ["a task has not ended and is cancelled again"]


async def test_a_task_that_fails_at_its_end_or_has_ended_is_no_matter(caplog):
    async def failing():
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError

    done, failed = asyncio.create_task(asyncio.sleep(0)), [asyncio.create_task(failing())]
    await done
    await asyncio.sleep(0)
    await tasks.end(done, *failed)
    assert all(task.done() for task in failed)
    assert caplog.messages == []
