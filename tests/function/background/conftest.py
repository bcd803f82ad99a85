"""Both stores of records, for the tests of each view."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from function.background.in_memory import InMemoryRecords
from function.background.redis_records import RedisRecords


@pytest.fixture
async def redis_records(lasting_redis):
    """Opens the records of a view in a Redis that has none yet."""
    opened = []

    def open_records(namespace):
        opened.append(RedisRecords(lasting_redis.url, 2.0, namespace))
        return opened[-1]

    async with Redis.from_url(lasting_redis.url) as redis:
        await redis.flushall()
    yield open_records
    for each in opened:
        await each.close()


@pytest.fixture(params=["memory", "redis"])
def records(request):
    """Opens the records of a view in this process, then in a Redis."""
    if request.param == "memory":
        return lambda _: InMemoryRecords()
    return request.getfixturevalue("redis_records")
