from __future__ import annotations

import pytest

from .redis_server import RedisServer


@pytest.fixture
def redis_server(needs, free_port, tmp_path):
    """A Redis of the test's own."""
    with RedisServer(needs("redis-server"), free_port, "--dir", str(tmp_path)) as server:
        yield server
