"""A list of people by their faces: a line of JSON for each, and no photo.

    {"id": "3f9c…", "label": "asked by mail", "created": "2026-12-01T09:00:00+00:00", "until": null,
     "family": "face_identity_128", "sha256": "71f2…", "threshold": null, "embeddings": ["…"]}

Embeddings are float32 in base64, of one identity model; those of another mean nothing to it.
"""

from __future__ import annotations

import base64
import json
import math
import secrets
import struct
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.identity import Metric
    from warmup.models.manifest import Model

_LABEL, _MOST_NUMBERS = 500, 4096
_NUMBERS = {"face_identity_128": 128, "arcface": 512}  # of an embedding, by family


class IdentityListError(Exception):
    """A list makes no sense, or is of another identity model; its text says what to do."""


@dataclass(frozen=True, slots=True)
class IdentityModel:
    """Which model made embeddings.

    Attributes:
        family: as a manifest names it.
        sha256: of its file.
    """

    family: str
    sha256: str

    @classmethod
    def of(cls, model: Model) -> IdentityModel:
        """That of an entry of a manifest."""
        return cls(model.family, model.file.sha256)


@dataclass(frozen=True, slots=True)
class ListedPerson:
    """One person of a list.

    Attributes:
        id: names it in the audit and on the command line.
        label: why it is on a deny-list, or who it is on a consent-list.
        created: when it was put on.
        until: when it ends; None for never.
        model: what made the embeddings.
        threshold: below which distance a face counts as this person's; None for the metric's own.
        embeddings: float32 in base64, one for each photo.
    """

    id: str
    label: str
    created: datetime
    model: IdentityModel
    embeddings: tuple[str, ...]
    until: datetime | None = None
    threshold: float | None = None

    def line(self) -> str:
        """The line of the file."""
        facts = asdict(self)
        facts |= facts.pop("model")
        facts["created"] = self.created.isoformat()
        facts["until"] = self.until and self.until.isoformat()
        return json.dumps(facts, ensure_ascii=False)

    @property
    def numbers(self) -> int:
        """How many numbers each of its embeddings has."""
        return len(base64.b64decode(self.embeddings[0])) // 4

    def holds(self, now: datetime) -> bool:
        """Whether it has not ended."""
        return self.until is None or now < self.until


def new_person(
    label: str,
    model: IdentityModel,
    embeddings: Iterable[NDArray[np.float32]],
    *,
    until: datetime | None = None,
    threshold: float | None = None,
) -> ListedPerson:
    """Somebody to be put on a list.

    Args:
        label: why, or who.
        model: what made the embeddings.
        embeddings: float32 [n], one for each photo.
        until: when it ends.
        threshold: of the distance, if not the metric's own.
    """
    texts = tuple(base64.b64encode(each.astype("<f4").tobytes()).decode() for each in embeddings)
    created = datetime.now(UTC).replace(microsecond=0)
    return ListedPerson(
        secrets.token_hex(6), label[:_LABEL], created, model, texts, until, threshold
    )


@dataclass(frozen=True)
class IdentityList:
    """The people of a list; it never changes."""

    people: tuple[ListedPerson, ...] = ()

    def match(
        self, embedding: NDArray[np.float32], metric: Metric, now: datetime
    ) -> ListedPerson | None:
        """The person of the list whom a face is nearest to, if it is near enough.

        Args:
            embedding: float32 [n], of the same model.
            metric: of that model.
            now: those who have ended do not count.
        """
        rows, owners = self._rows
        best, least = None, math.inf
        if not owners:
            return None
        for distance, owner in zip(metric.to_many(rows, embedding).tolist(), owners, strict=True):
            limit = metric.listed if owner.threshold is None else owner.threshold
            if distance < min(limit, least) and owner.holds(now):
                best, least = owner, distance
        return best

    def check(self, model: IdentityModel) -> None:
        """Check that all embeddings are of one model.

        Raises:
            IdentityListError: some are not.
        """
        others = [each.id for each in self.people if each.model != model]
        if others:
            few = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
            raise IdentityListError(
                f"{len(others)} of {len(self.people)} people ({few}) were enrolled with another"
                f" identity model than {model.family} {model.sha256[:12]}: enrol them again with"
                " this one, or take them off"
            )
        length = _NUMBERS.get(model.family)
        if length and any(each.numbers != length for each in self.people):
            raise IdentityListError(f"its embeddings have another length than {length}")

    def added(self, person: ListedPerson) -> IdentityList:
        """The same with one more."""
        return IdentityList((*self.people, person))

    def removed(self, id: str) -> IdentityList:  # noqa: A002
        """The same without one.

        Raises:
            KeyError: there is none with this id.
        """
        left = tuple(each for each in self.people if each.id != id)
        if len(left) == len(self.people):
            raise KeyError(id)
        return IdentityList(left)

    def data(self) -> bytes:
        """The file."""
        return "".join(f"{each.line()}\n" for each in self.people).encode()

    @cached_property
    def _rows(self) -> tuple[NDArray[np.float32], tuple[ListedPerson, ...]]:
        """All embeddings, float32 [m, n], and whose each is."""
        import numpy as np

        owners = tuple(each for each in self.people for _ in each.embeddings)
        texts = (text for each in self.people for text in each.embeddings)
        rows = [np.frombuffer(base64.b64decode(text), "<f4") for text in texts]
        return (np.stack(rows) if rows else np.zeros((0, 0), np.float32)), owners


def parse(data: bytes) -> IdentityList:
    """The list of a file.

    Raises:
        IdentityListError: a line makes no sense; names the first such line, and nothing of it.
    """
    people = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            people.append(_person(json.loads(line)))
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise IdentityListError(f"line {number} is not one of a list of identities") from None
    if len({each.id for each in people}) < len(people):
        raise IdentityListError("two of its lines have the same id")
    if len({len(text) for each in people for text in each.embeddings}) > 1:
        raise IdentityListError("its embeddings have different lengths: they are of several models")
    return IdentityList(tuple(people))


def _person(entry: dict[str, Any]) -> ListedPerson:
    """One line; raises what it likes when it makes no sense."""
    until, threshold = entry.get("until"), entry.get("threshold")
    person = ListedPerson(
        _text(entry["id"]),
        _text(entry["label"]),
        _moment(entry["created"]),
        IdentityModel(_text(entry["family"]), _text(entry["sha256"])),
        tuple(map(_text, entry["embeddings"])),
        None if until is None else _moment(until),
        None if threshold is None else float(threshold),
    )
    for text in person.embeddings:
        _finite(base64.b64decode(text, validate=True))
    if not person.id or not person.embeddings:
        raise ValueError(entry)
    if person.threshold is not None and not 0 < person.threshold <= 2:
        raise ValueError(entry)
    return person


def _finite(data: bytes) -> None:
    count, rest = divmod(len(data), 4)
    if rest or not 0 < count <= _MOST_NUMBERS:
        raise ValueError(count)
    if not all(map(math.isfinite, struct.unpack(f"<{count}f", data))):
        raise ValueError(count)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _moment(value: object) -> datetime:
    found = datetime.fromisoformat(_text(value))
    return found if found.tzinfo else found.replace(tzinfo=UTC)
