"""From a picture to the requests that made it, or that it was sent with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.trust.audit.line import by_id, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from function.trust.audit.keyring import AuditKey
    from function.trust.audit.line import AuditFile, AuditLine

_PHOTOS = ("output", "target", "reference", "consent")


@dataclass(frozen=True, slots=True)
class AuditMatch:
    """A line about a picture.

    Attributes:
        line: the line.
        by: `output`, `target`, `source`, `reference` or `consent`, when it has the digest of just
            these bytes in that place; `watermark`, when the picture carries the mark of the output;
            `request`, when it says so itself, which anybody can write into it.
        sound: whether its code is right; None where its key is not there.
    """

    line: AuditLine
    by: str
    sound: bool | None


@dataclass(frozen=True, slots=True)
class WantedPicture:
    """What lines are looked for by.

    Attributes:
        digests: of its bytes, by the id of the key that made each.
        payloads: of the watermarks that were read in it, 12 hexadecimal digits each.
        requests: the ids of requests that its metadata name.
    """

    digests: Mapping[str, str]
    payloads: frozenset[str] = frozenset()
    requests: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        data: bytes,
        keys: Sequence[AuditKey],
        payloads: Iterable[str] = (),
        requests: Iterable[str] = (),
    ) -> WantedPicture:
        """Those of a file, as each key makes them."""
        digests = {key.id: key.digest(data) for key in keys}
        lower = (payload.lower() for payload in payloads)
        return cls(digests, frozenset(lower), frozenset(requests))


def find(file: AuditFile, wanted: WantedPicture, keys: Sequence[AuditKey]) -> Iterator[AuditMatch]:
    """The lines of a file that are about a picture."""
    known = by_id(keys)
    for line in read(file):
        if line.facts and (by := _matched(line.facts, wanted)):
            sound = line.sound(known) if line.facts["key"] in known else None
            yield AuditMatch(line, by, sound)


def _matched(facts: Mapping[str, object], wanted: WantedPicture) -> str | None:
    digest = wanted.digests.get(str(facts["key"]))
    for name in _PHOTOS:
        if digest and facts.get(name) == digest:
            return name
    for name in ("source", "reference"):
        several = facts.get(f"{name}s")
        if digest and isinstance(several, list) and digest in several:
            return name
    people = facts.get("people")
    if digest and isinstance(people, list):
        said = (each.get("consent") for each in people if isinstance(each, dict))
        if digest in said:
            return "consent"
    if str(facts.get("watermark")) in wanted.payloads:
        return "watermark"
    return "request" if str(facts.get("request")) in wanted.requests else None
