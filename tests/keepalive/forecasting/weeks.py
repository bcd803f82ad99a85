"""Demand as it might have been: made up, but always the same.

`python -m tests.keepalive.forecasting.weeks` prints eight weeks of it.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from keepalive.forecasting.forecast import STEP
from keepalive.prometheus import Point

BERLIN = ZoneInfo("Europe/Berlin")
END = datetime(2026, 11, 30, 12, tzinfo=UTC)


def usual(at):
    """Requests at once: a day with two tops, half as much on weekends, nothing odd."""
    local = at.astimezone(BERLIN)
    hour = local.hour + local.minute / 60
    day = 6 * math.exp(-(((hour - 11) / 3) ** 2)) + 9 * math.exp(-(((hour - 20) / 2.5) ** 2))
    return (0.5 + day) * (0.5 if local.weekday() >= 5 else 1.0)


def weeks(count, end=END, noise=0.1, change=None, seed=1):
    """Points of that many weeks; `change(at, value)` alters them, None leaves one out."""
    dice = random.Random(seed)
    at, points = end - timedelta(days=7 * count), []
    daily = {}
    while at <= end:
        day = daily.setdefault(at.astimezone(BERLIN).date(), dice.lognormvariate(0, noise))
        value = usual(at) * day * dice.lognormvariate(0, noise)
        value = change(at, value) if change else value
        if value is not None:
            points.append(Point(at, value))
        at += STEP
    return points


if __name__ == "__main__":
    for point in weeks(8, noise=0.12):
        print(f"{point.at.isoformat()},{point.value:.4f}")
