"""The storage as a whole: schemes, time, what is imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .conftest import refused

WHAT_IS_IMPORTED = """
import asyncio, json, sys
import function.process.wiring.server
from function.storage.storage import Storage

async def main():
    storage = Storage()
    await storage.read("data:,x", 10)
    before = "google.cloud.storage" in sys.modules
    try:
        await storage.read("gs://photos/a?bad", 10)
    except Exception as problem:
        assert problem.code == "bad_value"
    print(json.dumps([before, "google.cloud.storage" in sys.modules]))

asyncio.run(main())
"""
WITHOUT_GOOGLE = """
import asyncio, sys
sys.modules["google.cloud.storage"] = sys.modules["google.cloud"] = sys.modules["google"] = None
from function.problems import Problem
from function.storage.storage import Storage
try:
    asyncio.run(Storage().read("gs://photos/a", 10))
except Problem as problem:
    print(problem.code, problem.extra["hint"])
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_googles_library_is_imported_with_the_first_gs_uri_and_not_before():
    assert json.loads(run(WHAT_IS_IMPORTED)) == [False, True]


def test_without_googles_library_it_says_what_to_install():
    told = run(WITHOUT_GOOGLE)
    assert told.startswith("unsupported_uri")
    assert "EXTRAS=gcs" in told


@pytest.mark.parametrize("uri", ["", "photo.jpg", "s3://bucket/name", "ftp://host/name"])
async def test_other_schemes_are_not_supported(storage, uri):
    async with refused("unsupported_uri"):
        await storage().read(uri, 10)


async def test_data_of_a_uri_is_limited_too(storage):
    async with refused("object_too_large"):
        await storage().read("data:,0123456789", 9)
    async with refused("object_forbidden"):
        await storage().write("data:,", b"", media_type="image/png")
