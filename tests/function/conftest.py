"""What tests of several parts of the function share."""

from __future__ import annotations

import pytest

from tests.function.admission.redis_server import RedisServer
from tests.function.live import Live
from tests.running import unused_port


@pytest.fixture(scope="module")
def lasting_redis(needs, tmp_path_factory):
    """One Redis for all tests of a file, which leave it running."""
    folder = tmp_path_factory.mktemp("redis")
    with RedisServer(needs("redis-server"), unused_port(), "--dir", str(folder)) as server:
        yield server


@pytest.fixture(scope="session")
def live():
    """A server that is ready, for tests that leave it as it is."""
    with Live() as server:
        yield server
