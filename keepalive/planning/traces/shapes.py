"""Loads that are made: requests per second for every second, by a shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DAY_S = 86_400


def sampled(steps: Sequence[tuple[float, float]], seconds: int) -> NDArray[np.float64]:
    """(seconds,) the load of a step function in each second; 0 before its first step."""
    times = np.array([at for at, _ in steps])
    loads = np.array([0.0, *(load for _, load in steps)])
    return loads[np.searchsorted(times, np.arange(seconds), side="right")]


def steady(rate: float, seconds: int = DAY_S) -> NDArray[np.float64]:
    """(seconds,) always the same."""
    return np.full(seconds, float(rate))


def tide(
    low: float,
    high: float,
    seconds: int = DAY_S,
    *,
    peak_hour: float = 20.0,
    sharpness: float = 2.0,
    weekend: float = 1.0,
) -> NDArray[np.float64]:
    """(seconds,) a day's tide, from Monday midnight on.

    Args:
        low: the least, twelve hours from the peak.
        high: the most.
        seconds: how long.
        peak_hour: when it is highest.
        sharpness: how narrow the peak is; 1 for a sine.
        weekend: by what it is multiplied on Saturday and Sunday.
    """
    at = np.arange(seconds)
    wave = (1 + np.cos(2 * math.pi * (at / DAY_S - peak_hour / 24))) / 2
    rates = low + (high - low) * wave**sharpness
    days = at // DAY_S % 7
    return np.where(days >= 5, rates * weekend, rates)


def flash(
    low: float,
    high: float,
    seconds: int = DAY_S,
    *,
    hour: float = 12.0,
    rise_s: float = 300.0,
    hold_s: float = 1800.0,
    fall_s: float = 1800.0,
) -> NDArray[np.float64]:
    """(seconds,) a crowd that comes within minutes, stays and goes.

    Args:
        low: before and after.
        high: at most.
        seconds: how long.
        hour: when it begins.
        rise_s: how long it takes to come, in a straight line.
        hold_s: how long it stays.
        fall_s: how long it takes to go.
    """
    begin = hour * 3600
    times = [0.0, begin, begin + rise_s, begin + rise_s + hold_s, begin + rise_s + hold_s + fall_s]
    return np.interp(np.arange(seconds), times, [low, low, high, high, low])


def spikes(
    low: float,
    high: float,
    seconds: int = DAY_S,
    *,
    every_s: float = 3600.0,
    length_s: float = 120.0,
    seed: int = 0,
) -> NDArray[np.float64]:
    """(seconds,) short bursts at random times and of random height up to `high`.

    Args:
        low: between them.
        high: at most.
        seconds: how long.
        every_s: the time between two, on average.
        length_s: how long each is.
        seed: of the chance.
    """
    chance = np.random.default_rng(seed)
    rates = np.full(seconds, float(low))
    at = chance.exponential(every_s)
    while at < seconds:
        height = chance.uniform(low, high)
        burst = slice(int(at), int(at + length_s))
        rates[burst] = np.maximum(rates[burst], height)
        at += length_s + chance.exponential(every_s)
    return rates
