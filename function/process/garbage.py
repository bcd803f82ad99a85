"""Python's garbage collection: not during the start, and not of what the start has made."""

from __future__ import annotations

import gc

from warmup.phase import Phase


def hold() -> None:
    """Collect nothing: the start makes no garbage, and looking for it takes a tenth of imports."""
    gc.disable()


def on_phase(phase: Phase) -> None:
    """Begin to collect when the start is over; what it has made is not looked at again."""
    if phase in {Phase.READY, Phase.FAILED, Phase.DRAINING} and not gc.isenabled():
        gc.freeze()
        gc.enable()
