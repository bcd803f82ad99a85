"""What jobs cost, and what each tier may have: read from a TOML file, or from the built-in one."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.admission.account import Allowance
from function.request_context import Lane
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

BUILT_IN = Path(__file__).parent / "policy.toml"

_MOST = 10**9  # tokens, pixels or seconds: more than anybody means


@dataclass(frozen=True, slots=True)
class Size:
    """A class of resolution: so many pixels at most, and the price."""

    name: str
    pixels: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PricedJob:
    """What the price of a job depends on.

    Attributes:
        pixels: of the target, which are those of the result.
        sources: photos of the person to put in.
        faces: how many faces are named; None for all that there are.
        like: photos of people to replace.
        others: pixels of each photo that is only looked at: of the sources and of `like`.
        size: bytes of all its photos.
    """

    pixels: int
    sources: int = 1
    faces: int | None = None
    like: int = 0
    others: tuple[int, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class Prices:
    """The price list, in tokens; policy.toml explains each item."""

    sizes: tuple[Size, ...]
    source: int
    face: int
    all_faces: int
    look: int
    bulk_from: int
    bulk_part: float
    like: int = 0
    large_above: int = _MOST
    large_each: int = _MOST
    size_each: int = _MOST
    faces: int | None = None

    def of(self, job: PricedJob, batch: int = 1) -> int:
        """The price of one job.

        Args:
            job: what is to be done.
            batch: how many jobs are ordered together.
        """
        more_faces = self.all_faces
        if job.faces is not None:
            more_faces = min(self.all_faces, self.face * (job.faces - 1))
        price = self._of_pixels(job.pixels) + self.source * (job.sources - 1) + more_faces
        price += self.like * job.like + sum(self._large(pixels) for pixels in job.others)
        if batch >= self.bulk_from:
            price = math.ceil(price * self.bulk_part)
        return max(price, self._least(job.size))

    def of_look(self, pixels: int, size: int) -> int:
        """The price of finding the faces of a photo, by its pixels and its bytes."""
        return max(self.look + self._large(pixels), self._least(size)) if self.look else 0

    def covers(self, tokens: int) -> int | None:
        """How many faces a photo may show for so many tokens; None for any number."""
        return self.faces * tokens if self.faces and tokens else None

    def _large(self, pixels: int) -> int:
        """What a large photo costs more for being looked at."""
        return math.ceil(max(0, pixels - self.large_above) / self.large_each)

    def _least(self, size: int) -> int:
        """What so many bytes cost at the least; the first of them are in any price."""
        return size // self.size_each

    def _of_pixels(self, pixels: int) -> int:
        for size in self.sizes:
            if pixels <= size.pixels:
                return size.tokens
        return math.ceil(self.sizes[-1].tokens * pixels / self.sizes[-1].pixels)


@dataclass(frozen=True, slots=True)
class Tier:
    """What a group of callers may have.

    Attributes:
        name: of the tier.
        lane: the lane of a request that asks for none.
        highest: the most urgent lane that a request may ask for.
        jobs: the lane of a job that asks for none.
        tokens: to what the balance is filled up; None for as many as the caller likes.
        refill_s: how long after the first token was spent.
        cap: the most tokens in one hour, granted ones included; None for any number.
        operator: may grant tokens.
        label: whether outputs have a label that people see, whatever a request wants.
        consent: what its requests have to say of consent, if that is more than `EMBER_CONSENT`
            asks of all: "stated" or "signed"; "off" for nothing more.
    """

    name: str
    lane: Lane
    highest: Lane
    jobs: Lane = Lane.BULK
    tokens: int | None = None
    refill_s: int = 3600
    cap: int | None = None
    operator: bool = False
    label: bool = False
    consent: str = "off"

    @property
    def allowance(self) -> Allowance | None:
        """What accounts of the tier are filled up to; None for no limit."""
        if self.tokens is None:
            return None
        return Allowance(self.tokens, 1000 * self.refill_s, self.cap)

    def may(self, lane: Lane) -> bool:
        """Whether a request may be in that lane."""
        return not lane.before(self.highest)


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole policy.

    Attributes:
        tiers: by name.
        usual: the tier of callers who have none.
        anonymous: what callers may have of whom nothing is known.
        prices: the price list.
    """

    tiers: Mapping[str, Tier]
    usual: Tier
    anonymous: Tier
    prices: Prices


def read(path: Path = BUILT_IN) -> Policy:
    """Read a policy.

    Raises:
        SettingsError: it cannot be read, or says what makes no sense; names the place.
    """
    try:
        with path.open("rb") as file:
            return _policy(_Table(tomllib.load(file), ""))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError([f"The policy {path} cannot be used: {reason}."]) from None


class _Table:
    """A TOML table of which each entry is read once; `close` refuses what is left."""

    def __init__(self, entries: object, place: str) -> None:
        if not isinstance(entries, dict):
            raise ValueError(f"[{place}] has to be a table")  # noqa: TRY004 (one kind of error)
        self._entries: dict[str, Any] = dict(entries)
        self._place = f"{place}." if place else ""

    def whole(self, name: str, default: int | None, least: int = 0) -> int | None:
        value = self._entries.pop(name, default)
        if value is not default and (type(value) is not int or not least <= value <= _MOST):
            raise ValueError(f"{self._place}{name} has to be a whole number from {least} on")
        return value

    def must(self, name: str, least: int = 0) -> int:
        if (value := self.whole(name, None, least)) is None:
            raise ValueError(f"{self._place}{name} is missing")
        return value

    def lane(self, name: str, default: Lane) -> Lane:
        value = self._entries.pop(name, default)
        try:
            return Lane(value)
        except ValueError:
            lanes = ", ".join(Lane)
            raise ValueError(f"{self._place}{name} has to be one of {lanes}") from None

    def word(self, name: str, known: str) -> bool:
        """Whether an entry is there, which can be one word only."""
        value = self._entries.pop(name, None)
        if value != known and value is not None:
            raise ValueError(f"{self._place}{name} can be {known} only")
        return value is not None

    def typed(self, name: str, kind: type, default: Any) -> Any:
        value = self._entries.pop(name, default)
        if not isinstance(value, kind):
            raise ValueError(f"{self._place}{name} is missing or no {kind.__name__}")  # noqa: TRY004
        return value

    def table(self, name: str) -> _Table:
        return _Table(self._entries.pop(name, {}), f"{self._place}{name}")

    def tables(self) -> dict[str, _Table]:
        names = list(self._entries)
        return {name: self.table(name) for name in names}

    def close(self) -> None:
        if self._entries:
            raise ValueError(f"there is no {self._place}{next(iter(self._entries))}")


def _policy(top: _Table) -> Policy:
    tiers = {name: _tier(name, table) for name, table in top.table("tiers").tables().items()}
    anonymous = _tier("anonymous", top.table("anonymous"))
    usual = top.typed("tier", str, None)
    prices = _prices(top.table("prices"))
    top.close()
    if usual not in tiers:
        raise ValueError(f"tier is {usual!r}, and there is no such tier")
    if anonymous.tokens is not None or anonymous.operator:
        raise ValueError("[anonymous] has nobody who could have tokens or be an operator")
    return Policy(tiers, tiers[usual], anonymous, prices)


def _tier(name: str, table: _Table) -> Tier:
    lane = table.lane("lane", Lane.STANDARD)
    tier = Tier(
        name,
        lane=lane,
        highest=table.lane("highest", lane),
        jobs=table.lane("jobs", Lane.BULK),
        tokens=table.whole("tokens", None),
        refill_s=table.whole("refill_s", 3600, 1) or 3600,
        cap=table.whole("cap", None),
        operator=table.typed("operator", bool, False),
        label=table.word("label", "always"),
        consent=table.typed("consent", str, "off"),
    )
    table.close()
    if tier.cap is not None and tier.tokens is None:
        raise ValueError(f"tier {name} has a cap, but no tokens")
    if tier.consent not in {"off", "stated", "signed"}:
        raise ValueError(f"consent of tier {name} has to be one of off, stated, signed")
    if not (tier.may(tier.lane) and tier.may(tier.jobs)):
        raise ValueError(f"a lane of tier {name} is above its highest")
    return tier


def _prices(table: _Table) -> Prices:
    bulk, large = table.table("bulk"), table.table("large")
    prices = Prices(
        sizes=_sizes(table.typed("sizes", list, None)),
        source=table.whole("source", 0) or 0,
        face=table.whole("face", 0) or 0,
        all_faces=table.whole("all_faces", 0) or 0,
        look=table.whole("look", 0) or 0,
        bulk_from=bulk.whole("from", _MOST, 2) or _MOST,
        bulk_part=bulk.typed("part", float, 1.0),
        like=table.whole("like", 0) or 0,
        large_above=large.whole("above", _MOST) or 0,
        large_each=large.whole("each", _MOST, 1) or _MOST,
        size_each=table.whole("bytes", _MOST, 1) or _MOST,
        faces=table.whole("faces", None, 1),
    )
    large.close()
    if not 0 < prices.bulk_part <= 1:
        raise ValueError("prices.bulk.part has to be above 0 and at most 1")
    bulk.close()
    table.close()
    return prices


def _sizes(entries: list[Any]) -> tuple[Size, ...]:
    sizes = []
    for number, entry in enumerate(entries):
        table = _Table(entry, f"prices.sizes[{number}]")
        name = table.typed("name", str, None)
        sizes.append(Size(name, table.must("pixels", 1), table.must("tokens")))
        table.close()
    if not sizes or sizes != sorted(sizes, key=lambda size: (size.pixels, size.tokens)):
        raise ValueError("prices.sizes has to begin with the fewest pixels and tokens")
    return tuple(sizes)
