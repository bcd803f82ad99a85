"""A load as it is named on a command line: a file, or a shape such as `flash:50-800,hour=18`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepalive.planning.traces import shapes, steps
from keepalive.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_LAST_S = 60.0

_SHAPES: dict[str, tuple[Callable[..., Any], dict[str, tuple[str, Callable[[str], float]]]]] = {
    "steady": (shapes.steady, {}),
    "tide": (
        shapes.tide,
        {
            "hour": ("peak_hour", float),
            "sharpness": ("sharpness", float),
            "weekend": ("weekend", float),
        },
    ),
    "flash": (
        shapes.flash,
        {
            "hour": ("hour", float),
            "rise": ("rise_s", duration),
            "hold": ("hold_s", duration),
            "fall": ("fall_s", duration),
        },
    ),
    "spikes": (
        shapes.spikes,
        {"every": ("every_s", duration), "length": ("length_s", duration), "seed": ("seed", int)},
    ),
}


def load(text: str, seconds: int | None = None, *, per_minute: bool = False) -> NDArray[np.float64]:
    """(seconds,) requests per second.

    Args:
        text: a path of CSV (`steps.read`), or a shape: its name, a colon, its rate or lowest and
            highest rate, and further `name=value`s after commas.
        seconds: how long; None for as long as the file goes, or a day.
        per_minute: whether the file has requests per minute.

    Raises:
        ValueError: it is neither; the text says what there is.
        UnreadableTrace: the file is not as it should be.
    """
    name, colon, rest = text.partition(":")
    if colon and name in _SHAPES:
        return _shaped(name, rest, seconds or shapes.DAY_S)
    path = Path(text)
    if not path.exists():
        raise ValueError(
            f"{text!r} is neither a file nor one of steady:50, tide:50-800, flash:50-800 and"
            " spikes:50-400"
        )
    found = steps.read(path)
    if seconds is None:
        last = found[-1][0] - found[-2][0] if len(found) > 1 else _LAST_S
        seconds = int(found[-1][0] + last)
    return shapes.sampled(found, seconds) / (60 if per_minute else 1)


def _shaped(name: str, rest: str, seconds: int) -> NDArray[np.float64]:
    shape, known = _SHAPES[name]
    rates, *extras = rest.split(",")
    wanted = 1 if name == "steady" else 2
    try:
        numbers = [float(each) for each in rates.split("-")]
    except ValueError:
        numbers = []
    if len(numbers) != wanted or numbers != sorted(numbers):
        example = f"{name}:50" if wanted == 1 else f"{name}:50-800"
        raise ValueError(f"{name}:{rest} is not like {example}")
    found: dict[str, float] = {}
    for extra in extras:
        key, _, value = extra.partition("=")
        if key not in known:
            raise ValueError(f"{name} has no {key!r}; it has: {', '.join(known) or 'nothing'}")
        field, reader = known[key]
        try:
            found[field] = reader(value)
        except ValueError:
            raise ValueError(f"{extra!r} has no value that {key} can have") from None
    made: NDArray[np.float64] = shape(*numbers, seconds=seconds, **found)
    return made
