"""Parts of a check that go wrong, each in its way."""

from __future__ import annotations

import os
import time

from tests.gpu.check import Missing


def fails(world) -> dict:
    """Nothing: it raises."""
    raise ValueError("one | two\nthree")


def hangs(world) -> dict:
    """Nothing: it never ends."""
    time.sleep(3600)
    return {}


def crashes(world) -> dict:
    """Nothing: its process ends as by a fault of a library."""
    print("about to crash", flush=True)
    os.abort()


def lacks(world) -> dict:
    """Nothing: something is not installed."""
    raise Missing("nothing that does it is installed")


def works(world) -> dict:
    """It works."""
    return {"number": 3.0, "inner": {"text": "a"}}
