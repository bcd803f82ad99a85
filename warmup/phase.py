"""Where a replica is in its life, and which steps are legal."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """`starting → fetching → loading → warming → ready → draining`, and `failed`."""

    STARTING = "starting"
    FETCHING = "fetching"
    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"

    def may_become(self, later: Phase) -> bool:
        """True when the step from this phase to `later` is legal. Draining and failed absorb."""
        return later in _NEXT[self]


class IllegalStep(Exception):
    """A step that no replica may take: a bug, never a state to go on with."""

    def __init__(self, phase: Phase, later: Phase) -> None:
        super().__init__(f"a replica that is {phase} cannot become {later}")


_LEAVE = {Phase.DRAINING, Phase.FAILED}
_NEXT: dict[Phase, set[Phase]] = {
    Phase.STARTING: {Phase.FETCHING, Phase.LOADING} | _LEAVE,
    Phase.FETCHING: {Phase.LOADING} | _LEAVE,
    Phase.LOADING: {Phase.WARMING} | _LEAVE,
    Phase.WARMING: {Phase.READY} | _LEAVE,
    Phase.READY: {Phase.LOADING, Phase.WARMING} | _LEAVE,
    Phase.DRAINING: set(),
    Phase.FAILED: set(),
}
