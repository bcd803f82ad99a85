"""Whether an audit is whole: nothing changed, left out, added, moved or cut off.

Each chain is walked from its `start` to its end; then what chains have seen of each other is held
against what is there, so that the loss of a whole chain, or of an end that somebody has seen, is
found as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC
from itertools import groupby
from typing import TYPE_CHECKING

from function.trust.audit.chain import HEX
from function.trust.audit.line import by_id, read
from function.trust.audit.record import AuditKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from function.trust.audit.keyring import AuditKey
    from function.trust.audit.line import AuditFile, AuditLine


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Something that was found.

    Attributes:
        where: file and line, or the chain.
        text: what is wrong, or worth knowing.
    """

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What became of a check.

    Attributes:
        chains: how many chains there are.
        lines: how many lines.
        faults: what is wrong.
        notes: what is worth knowing and no fault.
    """

    chains: int
    lines: int
    faults: tuple[AuditFinding, ...]
    notes: tuple[AuditFinding, ...]


@dataclass(frozen=True, slots=True, order=True)
class _Link:
    """What is kept of a line: its place in a chain, and where it was read."""

    seq: int
    order: int
    mac: str
    prev: str
    kind: str = field(compare=False)
    where: str = field(compare=False)
    place: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Sight:
    """What a line says of another chain."""

    by: str
    chain: str
    seq: int
    mac: str


class AuditVerifier:
    """Takes files and says what is wrong with them.

    Args:
        keys: those that lines may have been written with; none where none was used.
        since: lines from before that may be missing, because they are not kept for longer.
    """

    def __init__(self, keys: Sequence[AuditKey], since: datetime | None = None) -> None:
        self._keys = by_id(keys)
        self._keyed = any(key.id for key in keys)
        self._since = f"{since.astimezone(UTC):%Y%m%dT%H%M%S}" if since else ""
        self._chains: defaultdict[str, list[_Link]] = defaultdict(list)
        self._sights: list[_Sight] = []
        self._faults: list[AuditFinding] = []
        self._notes: list[AuditFinding] = []
        self._lines = 0

    def add(self, file: AuditFile) -> None:
        """Read a file."""
        last: dict[str, _Link] = {}
        for line in read(file):
            if line.torn:
                self._notes.append(AuditFinding(line.where, "ends with a line that is not whole"))
            elif line.broken:
                self._fault(line.where, "is no line of an audit")
            else:
                self._take(line, last)

    def report(self) -> AuditReport:
        """What is wrong with all that was read, each chain by itself and each as others saw it."""
        faults, notes = list(self._faults), list(self._notes)
        for chain in sorted(self._chains):
            found = _Walk(chain, self._old(chain))
            found.walk(sorted(self._chains[chain]))
            faults += found.faults
            notes += found.notes
        faults += self._missed_sights()
        return AuditReport(len(self._chains), self._lines, tuple(faults), tuple(notes))

    def _take(self, line: AuditLine, last: dict[str, _Link]) -> None:
        facts = line.facts
        self._lines += 1
        chain, seq = facts["chain"], facts["seq"]
        link = _Link(
            seq, self._lines, facts["mac"], facts["prev"], facts["kind"], line.where, line.place
        )
        if (before := last.get(chain)) and seq < before.seq:
            self._fault(line.where, f"line {seq} of {chain} comes after line {before.seq}")
        last[chain] = link
        self._chains[chain].append(link)
        if problem := self._unsound(line):
            self._fault(line.where, problem)
        else:
            self._look(line)

    def _unsound(self, line: AuditLine) -> str | None:
        """Why the code of a line proves nothing."""
        name = line.facts["key"]
        if not name and self._keyed:
            return "was written without a key"
        if name not in self._keys:
            return f"was written with the key {name}, which is not among those given (--key)"
        return None if line.sound(self._keys) else "was changed: its code is wrong"

    def _look(self, line: AuditLine) -> None:
        facts = line.facts
        if facts["kind"] == AuditKind.MISSED:
            text = f"{facts.get('count')} records before it could not be written"
            self._notes.append(AuditFinding(line.where, text))
        seen = facts.get("seen", [])
        for each in seen if isinstance(seen, list) else []:
            match each:
                case {"chain": str(chain), "seq": int(seq), "mac": str(mac)}:
                    self._sights.append(_Sight(line.where, chain, seq, mac))

    def _missed_sights(self) -> list[AuditFinding]:
        """What somebody has seen and nobody can find."""
        macs = {
            name: {link.seq: link.mac for link in links} for name, links in self._chains.items()
        }
        worst: dict[tuple[str, str], tuple[int, AuditFinding]] = {}
        for sight in self._sights:
            found = macs.get(sight.chain)
            if found is None:
                kind, text = "missing", f"the chain is missing; {sight.by} had seen it"
            elif sight.seq > max(found):
                kind = "short"
                text = f"ends with line {max(found)}; {sight.by} had seen line {sight.seq}"
            elif found.get(sight.seq, sight.mac)[:HEX] != sight.mac[:HEX]:
                kind, text = "other", f"line {sight.seq} is not the one that {sight.by} had seen"
            else:
                continue
            if found is None and self._old(sight.chain):
                continue
            known = worst.get((sight.chain, kind))
            if known is None or sight.seq > known[0]:
                worst[sight.chain, kind] = sight.seq, AuditFinding(sight.chain, text)
        return [finding for _, finding in worst.values()]

    def _old(self, chain: str) -> bool:
        """Whether a chain began so long ago that its beginning need not be kept."""
        return chain[:15] < self._since

    def _fault(self, where: str, text: str) -> None:
        self._faults.append(AuditFinding(where, text))


class _Walk:
    """One chain from its beginning to its end.

    Args:
        chain: its name.
        old: whether its beginning need not be there.
    """

    def __init__(self, chain: str, old: bool) -> None:
        self._chain, self._old = chain, old
        self.faults: list[AuditFinding] = []
        self.notes: list[AuditFinding] = []

    def walk(self, links: Sequence[_Link]) -> None:
        """Find everything that is wrong with it.

        Args:
            links: its lines, in the order of their numbers.
        """
        before: _Link | None = None
        for _, group in groupby(links, key=lambda link: link.seq):
            same = list(group)
            self._alone(same)
            follows = [link for link in same if before and link.prev == before.mac]
            link = (follows or same)[0]
            self._follows(link, before)
            before = link
        if before and before.kind != AuditKind.STOP:
            text = (
                f"ended without stop after line {before.seq}: its process was killed, or still runs"
            )
            self.notes.append(AuditFinding(self._chain, text))

    def _alone(self, same: Sequence[_Link]) -> None:
        """There is one line of a number, and one copy of it in a place."""
        first = same[0]
        for other in same[1:]:
            if other.mac != first.mac:
                text = f"is another line {other.seq} of {self._chain} than that in {first.where}"
                self.faults.append(AuditFinding(other.where, text))
        for (place, mac), count in Counter((link.place, link.mac) for link in same).items():
            if count > 1:
                twice = [link for link in same if (link.place, link.mac) == (place, mac)]
                text = f"line {first.seq} of {self._chain} is there {count} times"
                self.faults.append(AuditFinding(twice[1].where, text))

    def _follows(self, link: _Link, before: _Link | None) -> None:
        if before is None:
            if link.seq and not self._old:
                self._fault(link, f"the lines before line {link.seq} are missing")
            elif not link.seq and (link.kind != AuditKind.START or link.prev):
                self._fault(link, "is no beginning of a chain")
        elif before.kind == AuditKind.STOP:
            self._fault(link, "comes after the end of its chain")
        elif link.seq > before.seq + 1:
            first, last = before.seq + 1, link.seq - 1
            lines = f"line {first} is" if first == last else f"lines {first} to {last} are"
            self._fault(link, f"{lines} missing before it")
        elif link.prev != before.mac:
            self._fault(link, f"does not follow line {before.seq} in {before.where}")

    def _fault(self, link: _Link, text: str) -> None:
        self.faults.append(AuditFinding(link.where, f"{self._chain}: {text}"))
