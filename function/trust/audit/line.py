"""Lines of an audit that are read, out of files that have nothing else or from among other logs."""

from __future__ import annotations

import hmac
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.trust.audit.chain import CHAIN, FORMAT, canonical, sealed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from function.trust.audit.keyring import AuditKey

_MARK = b"audit"
_WRAPPED = ("log", "jsonPayload", "textPayload", "message")
"""Where collectors of logs put a line of theirs: Docker, Google Cloud, and others."""

_DEPTH = 3
_FORMS = {
    "chain": CHAIN,
    "key": re.compile(r"([0-9a-f]{8})?"),
    "kind": re.compile(r"[a-z_]{1,40}"),
    "mac": re.compile(r"[0-9a-f]{64}"),
    "prev": re.compile(r"([0-9a-f]{64})?"),
}


@dataclass(frozen=True, slots=True)
class AuditFile:
    """Something with lines in it.

    Attributes:
        place: what was named by whoever reads: a folder, a bucket, a log.
        name: which file of it.
        lines: its lines, with their ends.
        pure: whether each of them has to be a line of an audit.
    """

    place: str
    name: str
    lines: Iterable[bytes]
    pure: bool


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A line of an audit.

    Attributes:
        facts: what it says.
        file: where it is.
        number: which line of that.
        place: what the file is of.
        torn: whether it is the beginning of a line that was never whole; it has no facts.
        broken: whether it is no line of an audit, where each has to be one; it has no facts.
    """

    facts: Mapping[str, Any]
    file: str
    number: int
    place: str = ""
    torn: bool = False
    broken: bool = False

    @property
    def where(self) -> str:
        """File and line for people."""
        return f"{self.file}:{self.number}"

    def sound(self, keys: Mapping[str, AuditKey]) -> bool:
        """Whether its code is right; its key has to be among `keys`."""
        body = _body(self.facts)
        return body is not None and hmac.compare_digest(
            keys[self.facts["key"]].code(body), self.facts["mac"]
        )


def by_id(keys: Sequence[AuditKey]) -> dict[str, AuditKey]:
    """Keys by what they are called in lines."""
    return {key.id: key for key in keys}


def read(file: AuditFile) -> Iterator[AuditLine]:
    """The lines of an audit in a file."""
    for number, raw in enumerate(file.lines, 1):
        facts = _pure(raw) if file.pure else _found(raw)
        if facts is not None:
            yield AuditLine(facts, file.name, number, file.place)
        elif file.pure:
            torn = not raw.endswith(b"\n")
            yield AuditLine({}, file.name, number, file.place, torn=torn, broken=not torn)


def _pure(raw: bytes) -> dict[str, Any] | None:
    """The facts of a line that is written exactly as it was."""
    facts = _checked(_parsed(raw))
    if facts is None or (body := _body(facts)) is None:
        return None
    return facts if sealed(body, facts["mac"]).rstrip(b"\n") == raw.rstrip(b"\n") else None


def _found(raw: bytes) -> dict[str, Any] | None:
    """The facts of a line in a log, whatever the log has put around it."""
    if _MARK not in raw or (begin := raw.find(b"{")) < 0:
        return None
    value = _parsed(raw[begin:])
    for _ in range(_DEPTH):
        if (facts := _checked(value)) is not None:
            return facts
        if not isinstance(value, dict):
            return None
        inner = next((value[name] for name in _WRAPPED if name in value), None)
        value = _parsed(inner[inner.find("{") :].encode()) if isinstance(inner, str) else inner
    return None


def _checked(value: object) -> dict[str, Any] | None:
    """A value, if it has what each line of an audit has."""
    if not isinstance(value, dict) or value.get("audit") != FORMAT:
        return None
    texts = all(
        isinstance(text := value.get(name), str) and form.fullmatch(text)
        for name, form in _FORMS.items()
    )
    seq = value.get("seq")
    return value if texts and type(seq) is int and seq >= 0 else None


def _body(facts: Mapping[str, Any]) -> bytes | None:
    """What the code of a line is of; None where the line is nested too deep to be written."""
    try:
        return canonical({name: value for name, value in facts.items() if name != "mac"})
    except RecursionError:
        return None


def _parsed(raw: bytes) -> object:
    """What some JSON says; None when it is none, or says something twice."""
    try:
        return json.loads(raw, object_pairs_hook=_once, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> float | int:
    """A number: of those that are whole, collectors of logs may have made fractions."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return int(number) if number.is_integer() else number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found
