"""What is being worked on, by its key."""

from __future__ import annotations

import asyncio

from function.lease import Running


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
