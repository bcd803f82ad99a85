from __future__ import annotations

import pytest

from .live import Live


@pytest.fixture(scope="session")
def live():
    """A server that is ready, for tests that leave it as it is."""
    with Live() as server:
        yield server
