"""How much is tried: what `make test` has time for, or with `make soak` all of it."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SOAK = os.environ.get("EMBER_TEST_SOAK") == "1"


def tried(usually: T, soak: T) -> T:
    """What this run tries."""
    return soak if SOAK else usually
