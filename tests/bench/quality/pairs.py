"""What is swapped to be judged: a source, a target, and why this pair is hard."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from tests.bench.quality.changes import SOURCES, TARGETS
from tests.bench.quality.people import HEADS, photo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from tests.bench.quality.people import Studio

    Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pictures to swap.

    Attributes:
        name: short, a file's name.
        kind: of such pairs together.
        about: what is hard about it.
        source, target: make uint8 [H, W, 3] RGB.
        right: what must come of it, for a head that is put on itself; else None.
        more: make other photos of the person on the source.
    """

    name: str
    kind: str
    about: str
    source: Callable[[], Pixels]
    target: Callable[[], Pixels]
    right: Callable[[], Pixels] | None = None
    more: tuple[Callable[[], Pixels], ...] = ()


def pairs(studio: Studio, pattern: str = "*") -> list[Pair]:
    """Those whose name fits the pattern."""
    every = (*_samples(), *_several(studio), *_portraits(), *_heads(studio), *_known(studio))
    return [pair for pair in every if fnmatch(pair.name, pattern)]


def _samples() -> Iterator[Pair]:
    """The two people of the samples, and both in other light, of other size and quality."""
    for name, one, other in (("h-c", "hopper", "collins"), ("c-h", "collins", "hopper")):
        source, target = (lambda one=one: photo(one)), (lambda other=other: photo(other))
        yield Pair(name, "samples", "the samples", source, target)
        for kind, (about, change) in TARGETS.items():
            changed = lambda change=change, other=other: change(photo(other))  # noqa: E731
            yield Pair(f"{name}-{kind}", "samples, changed", f"target {about}", source, changed)
        for kind, (about, change) in SOURCES.items():
            changed = lambda change=change, one=one: change(photo(one))  # noqa: E731
            yield Pair(f"{name}-{kind}", "samples, changed", f"source {about}", changed, target)


def _several(studio: Studio) -> Iterator[Pair]:
    """Worse photos of the person beside a good one: no further from it than that one alone."""
    for name, one, other in (("h-c", "hopper", "collins"), ("c-h", "collins", "hopper")):
        source, target = (lambda one=one: photo(one)), (lambda other=other: photo(other))
        worse = tuple(lambda how=how, one=one: how(photo(one)) for _, how in SOURCES.values())
        about = "all sources above together"
        yield Pair(f"{name}-several", "several photos", about, source, target, more=worse)
    for name, other in (("light", "collins"), ("brown", "hopper")):
        head = HEADS[name]
        turned = tuple(
            lambda head=head, yaw=yaw: studio.picture(head, yaw=yaw) for yaw in (-25.0, 25.0)
        )
        yield Pair(
            f"{name}-{other}-several",
            "several photos",
            f"{name} from before and from both sides, on {other}",
            lambda head=head: studio.picture(head),
            lambda other=other: photo(other),
            more=turned,
        )


_PORTRAITS = [
    ("collins", "lincoln", "a beard, no colour"),
    ("lincoln", "collins", "a beard, no colour"),
    ("hopper", "mona_lisa", "a painting, nothing of the frame"),
    ("mona_lisa", "hopper", "spectacles and hat on the target"),
    ("collins", "mona_lisa", "a painting"),
    ("mona_lisa", "collins", "a painting on a photo"),
    ("collins", "pearl_earring", "a head turned by 33 degrees"),
    ("pearl_earring", "collins", "a source turned by 33 degrees"),
    ("mona_lisa", "pearl_earring", "both turned"),
    ("collins", "douglass", "beard, dark skin, no colour"),
    ("douglass", "hopper", "a dark source on light skin"),
    ("tubman", "collins", "a dark source on light skin"),
    ("collins", "tubman", "dark skin"),
    ("tubman", "mona_lisa", "a photo on a painting"),
    ("douglass", "lincoln", "two beards"),
    ("hopper", "van_gogh", "brush strokes, a beard"),
    ("van_gogh", "hopper", "brush strokes, a beard"),
]


def _portraits() -> Iterator[Pair]:
    """Historical portraits and paintings."""
    for one, other, about in _PORTRAITS:
        source, target = (lambda one=one: photo(one)), (lambda other=other: photo(other))
        yield Pair(f"{one}-{other}", "portraits", about, source, target)


_CROSSED = [
    ("collins", "light"), ("collins", "brown"), ("collins", "old"), ("collins", "dark"),
    ("collins", "painted"), ("collins", "turned"), ("collins", "covered"), ("collins", "shaded"),
    ("hopper", "light"), ("hopper", "dark"), ("hopper", "shaded"), ("light", "collins"),
    ("dark", "hopper"), ("painted", "collins"), ("light", "dark"), ("dark", "light"),
    ("light", "covered"), ("turned", "light"),
]  # fmt: skip


def _heads(studio: Studio) -> Iterator[Pair]:
    """Made heads among themselves and with people."""

    def picture(name: str) -> Callable[[], Pixels]:
        return lambda: photo(name) if name not in HEADS else studio.picture(HEADS[name])

    for one, other in _CROSSED:
        about = f"{one} on {other}, a made head"
        yield Pair(f"{one}-{other}", "made heads", about, picture(one), picture(other))


_SAME: list[tuple[str, str, str, dict[str, object], dict[str, object]]] = [
    ("itself", "light", "nothing", {}, {}),
    ("side", "light", "light from the right", {"light": (1.0, -0.1, -0.3)}, {}),
    ("unside", "light", "a source lit from the right", {}, {"light": (1.0, -0.1, -0.3)}),
    ("warm", "light", "warm light", {"colour": (1.0, 0.72, 0.4)}, {}),
    ("dim", "brown", "dim light", {"colour": (0.12, 0.12, 0.12)}, {}),
    ("yaw", "light", "a target turned by 25 degrees", {"yaw": 25.0}, {}),
    ("far", "brown", "a target turned by 38 degrees", {"yaw": 38.0}, {}),
    ("unyaw", "light", "a source turned by 25 degrees", {}, {"yaw": 25.0}),
    ("glasses", "light", "spectacles on the target", {"spectacles": True}, {}),
    ("hand", "light", "a hand before the target", {"hand": True}, {}),
    ("open", "brown", "an open mouth", {"smile": 0.8}, {}),
    ("tan", "light", "a source with darker skin", {}, {"tone": 3}),
    ("pale", "brown", "a source with lighter skin", {}, {"tone": 1}),
    ("small", "light", "a source of a quarter of the size", {}, {"size": 140}),
]


def _known(studio: Studio) -> Iterator[Pair]:
    """A made head on itself: the target is right already, but for its spectacles."""
    for kind, name, about, on_target, on_source in _SAME:
        head = HEADS[name]
        right = {key: value for key, value in on_target.items() if key != "spectacles"}
        yield Pair(
            f"same-{kind}",
            "made heads on themselves",
            f"itself, {about}",
            lambda head=head, on=on_source: studio.picture(head, **on),
            lambda head=head, on=on_target: studio.picture(head, **on),
            lambda head=head, on=right: studio.picture(head, **on),
        )
