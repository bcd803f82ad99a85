"""The floors that the pre-scaler would set, from its schedule and its own decision."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from keepalive.prescaler.decide import FloorMemory, FloorSamples, FloorSpec, decide

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from keepalive.prescaler.schedule import Schedule

_EVERY_S = 60


def floors(schedule: Schedule, begin: datetime, seconds: int) -> NDArray[np.int64]:
    """(seconds,) the floor in each second, decided once a minute from the schedule alone.

    Args:
        schedule: which floor is wanted when.
        begin: the moment of the first second, with a zone.
        seconds: how many.
    """
    spec = FloorSpec(schedule, per_replica=1.0, watching=False)
    floor, memory = schedule.ahead(begin).floor, FloorMemory()
    found = []
    for minute in range(math.ceil(seconds / _EVERY_S)):
        now = begin + timedelta(seconds=minute * _EVERY_S)
        decision = decide(now, FloorSamples(floor, memory), spec)
        floor, memory = decision.floor, decision.memory
        found.append(floor)
    return np.repeat(np.array(found, np.int64), _EVERY_S)[:seconds]
