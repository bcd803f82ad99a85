from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from function.problems import Problem
from function.storage.storage import Storage


@pytest.fixture
async def storage():
    """Makes storages that are closed when the test ends."""
    made = []

    def make(**options):
        made.append(Storage(**options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@asynccontextmanager
async def refused(*codes):
    """The body has to raise one of the problems; `found.problem` says which."""

    class Found:
        problem: Problem

    found = Found()
    with pytest.raises(Problem) as raised:
        yield found
    found.problem = raised.value
    assert raised.value.code in codes, raised.value.detail
