"""Kinds of fields, and what is wrong with a value of each.

A tree of these, as `fields` has it, says which fields an object has and what each may be. A kind is
called with a value and its path, and yields complaints, or flags of the cluster that the value
needs. A null counts as absent, as it does for Kubernetes.
"""

# ruff: noqa: D102 - `FieldKind` says what each `__call__` yields

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from keepalive.doctor.formats import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

INT32 = 2**31 - 1
INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something that cannot be so.

    Attributes:
        text: where, what is wrong, and what to write instead.
        of_type: whether the value is of another type, so that nothing can be said about the rest.
    """

    text: str
    of_type: bool = False


@dataclass(frozen=True, slots=True)
class FlagNeed:
    """Something that a flag of the cluster has to allow.

    Attributes:
        at: where it is.
        flag: in config-features.
    """

    at: str
    flag: str


Findings: TypeAlias = "Iterator[Complaint | FlagNeed]"
FieldKind: TypeAlias = "Callable[[Any, str], Findings]"
"""What is wrong with a value that is not null, at a path."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever it is."""

    def __call__(self, _given: Any, _at: str, /) -> Findings:
        yield from ()


@dataclass(frozen=True, slots=True)
class Text:
    """A string.

    Attributes:
        check: what is wrong with one that is not empty, in words that follow it, or None.
    """

    check: Callable[[str], str | None] | None = None

    def __call__(self, given: Any, at: str, /) -> Findings:
        if isinstance(given, dict | list):
            yield Complaint(f"{at} must be a single value, a string", of_type=True)
        elif not isinstance(given, str):
            yield Complaint(f"{at}: {given!r} must be a string; put it in quotes", of_type=True)
        elif given and self.check and (problem := self.check(given)):
            yield Complaint(f"{at}: {given!r} {problem}")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in a range."""

    least: int = 0
    most: int = INT32

    def __call__(self, given: Any, at: str, /) -> Findings:
        if isinstance(given, dict | list):
            yield Complaint(f"{at} must be a single value, a whole number", of_type=True)
        elif type(given) is not int:
            yield Complaint(f"{at}: {given!r} is no whole number", of_type=True)
        elif not self.least <= given <= self.most:
            end = "" if self.most >= INT32 else f" to {self.most}"
            yield Complaint(f"{at}: {given} is not from {self.least}{end}")


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false.

    Attributes:
        only: the one of the two that is allowed; None for both.
        why: the other is not.
    """

    only: bool | None = None
    why: str = ""

    def __call__(self, given: Any, at: str, /) -> Findings:
        if type(given) is not bool:
            yield Complaint(f"{at}: {given!r} must be true or false, without quotes", of_type=True)
        elif self.only not in {None, given}:
            yield Complaint(f"{at} is refused: {self.why}")


@dataclass(frozen=True, slots=True)
class Port:
    """The number or the name of a port."""

    def __call__(self, given: Any, at: str, /) -> Findings:
        if type(given) is int:
            yield from Whole(0, 65535)(given, at)
        elif not isinstance(given, str):
            yield Complaint(
                f"{at}: {given!r} must be the number or the name of a port", of_type=True
            )


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity of Kubernetes, not below zero."""

    def __call__(self, given: Any, at: str, /) -> Findings:
        if isinstance(given, dict | list | bool):
            yield Complaint(f"{at}: {given!r} must be a quantity such as 500m or 2Gi", of_type=True)
        elif (amount := quantity(given)) is None:
            yield Complaint(f"{at}: {given!r} is no quantity; write one such as 500m, 2 or 1.5Gi")
        elif amount < 0:
            yield Complaint(f"{at}: {given!r} is below zero")


@dataclass(frozen=True, slots=True)
class Many:
    """A list.

    Attributes:
        kind: of its items.
        once: the field of an item that no two may share; "" for none.
        needs_one: whether it must not be empty.
    """

    kind: FieldKind
    once: str = ""
    needs_one: bool = False

    def __call__(self, given: Any, at: str, /) -> Findings:
        if not isinstance(given, list):
            yield Complaint(f"{at} must be a list", of_type=True)
            return
        if self.needs_one and not given:
            yield Complaint(f"{at} is empty")
        seen = set()
        for index, one in enumerate(given):
            yield from self.kind(one, f"{at}[{index}]")
            key = one.get(self.once) if self.once and isinstance(one, dict) else None
            if isinstance(key, str) and key:
                if key in seen:
                    yield Complaint(f"{at}[{index}].{self.once}: {key!r} is there twice; leave one")
                seen.add(key)


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping whose names anybody may choose.

    Attributes:
        kind: of its values.
        check: what is wrong with a name, in words that follow it, or None.
    """

    kind: FieldKind
    check: Callable[[str], str | None] | None = None

    def __call__(self, given: Any, at: str, /) -> Findings:
        if not isinstance(given, dict):
            yield Complaint(f"{at} must be a mapping", of_type=True)
            return
        for key, value in given.items():
            if not isinstance(key, str):
                yield _no_string(key, at)
                continue
            if self.check and (problem := self.check(key)):
                yield Complaint(f"{at}: the name {key!r} {problem}")
            if value is not None:
                yield from self.kind(value, f"{at}.{key}")


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with fields that are known.

    Attributes:
        known: their kinds.
        needs: those that must be there, and not empty.
        one_of: of these there must be one.
        or_none: whether there may be none of them.
    """

    known: Mapping[str, FieldKind] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    or_none: bool = False

    def __call__(self, given: Any, at: str, /) -> Findings:
        if not isinstance(given, dict):
            yield Complaint(f"{at or 'the document'} must be a mapping", of_type=True)
            return
        for key, value in given.items():
            path = f"{at}.{key}".lstrip(".")
            if not isinstance(key, str):
                yield _no_string(key, at)
            elif key not in self.known:
                near = get_close_matches(key, self.known, 1)
                yield Complaint(
                    f"{path} is unknown" + (f"; did you mean {near[0]}?" if near else "")
                )
            elif value is not None:
                yield from self.known[key](value, path)
        for key in self.needs:
            if given.get(key) in (None, "", []):
                yield Complaint(f"{f'{at}.{key}'.lstrip('.')} is missing")
        found = [key for key in self.one_of if given.get(key) is not None]
        if len(found) > 1:
            yield Complaint(f"{at} has both {' and '.join(found)}; only one is possible")
        elif self.one_of and not (found or self.or_none):
            yield Complaint(f"{at} has none of {', '.join(self.one_of)}; it needs one")


@dataclass(frozen=True, slots=True)
class Refused:
    """A field that Kubernetes has and that Knative never takes.

    Attributes:
        why: and what to do instead.
    """

    why: str

    def __call__(self, _given: Any, at: str, /) -> Findings:
        yield Complaint(f"{at} is refused: {self.why}")


@dataclass(frozen=True, slots=True)
class BehindFlag:
    """A field that a flag of config-features has to allow."""

    flag: str
    kind: FieldKind

    def __call__(self, given: Any, at: str, /) -> Findings:
        yield FlagNeed(at, self.flag)
        yield from self.kind(given, at)


def _no_string(key: object, at: str) -> Complaint:
    text = f"{at or 'the document'}: the name {key!r} must be a string; put it in quotes"
    return Complaint(text, of_type=True)
