"""Environment variables as typed, documented fields of frozen dataclasses, each declared once.

A field made by `variable` carries everything that reading, printing and documenting it needs; its
name is that of the environment variable without the prefix. A part of the program has a dataclass
of its own, which is a `group` in a larger one, so that a part is handed what it needs and no more.
The variables themselves are in `warmup.settings.settings` and `function.settings`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warmup.settings.readers import Reader

T = TypeVar("T")

PREFIX = "EMBER_"
HIDDEN = "***"
"""What is shown in place of a secret."""


class SettingsError(Exception):
    """Some variables are wrong; `problems` has one sentence for each of them."""

    exit_code = 78

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Variable:
    """One declared variable.

    Attributes:
        field: the attribute that it sets.
        name: the environment variable.
        reader: how its text is read.
        default: its value when it is not set.
        doc: one or two sentences for the table and for `ember config`.
        shown_default: the default in words, when the value itself says too little.
        fallback: a variable of the platform that counts when this one is not set.
        secret: never printed.
    """

    field: str
    name: str
    reader: Reader[Any]
    default: Any
    doc: str
    shown_default: str
    fallback: str | None
    secret: bool


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """The effective value of one variable and the environment variable that gave it, if any."""

    variable: Variable
    value: Any
    origin: str | None

    @property
    def shown(self) -> str:
        """The value as people read it."""
        if self.origin is None:
            return self.variable.shown_default
        return str(self.public)

    @property
    def public(self) -> Any:
        """The value itself, or `HIDDEN` in place of a secret that is set."""
        return HIDDEN if self.variable.secret and self.origin else self.value


def variable(
    default: T,
    reader: Reader[Any],
    doc: str,
    *,
    shown_default: str | None = None,
    fallback: str | None = None,
    secret: bool = False,
) -> T:
    """Declare a variable as a field of a dataclass.

    Args:
        default: its value when it is not set.
        reader: how its text is read.
        doc: one or two sentences for the table and for `ember config`.
        shown_default: the default in words, when the value itself says too little.
        fallback: a variable of the platform that counts when this one is not set.
        secret: never printed.
    """
    shown = shown_default if shown_default is not None else str(default).removesuffix(".0")
    facts = {
        "reader": reader,
        "doc": doc,
        "shown_default": shown,
        "fallback": fallback,
        "secret": secret,
    }
    return dataclasses.field(default=default, repr=not secret, metadata=facts)


def group(declared: type[T]) -> T:
    """Declare all variables of another dataclass as one field of this one."""
    return dataclasses.field(default_factory=declared, metadata={"group": declared})


def variables(declared: type[Any]) -> Iterator[Variable]:
    """Every variable that a dataclass and its groups declare, in their order."""
    for field in dataclasses.fields(declared):
        if "group" in field.metadata:
            yield from variables(field.metadata["group"])
        else:
            yield Variable(
                field.name, PREFIX + field.name.upper(), default=field.default, **field.metadata
            )


def build(declared: type[T], **values: Any) -> T:
    """A dataclass with its groups, of the values of some variables; the others have their defaults.

    Raises:
        TypeError: a value is of no variable that it declares.
    """
    made = _build(declared, values)
    if values:
        raise TypeError(f"{declared.__name__} has no {', '.join(values)}")
    return made


def replace(settings: T, **values: Any) -> T:
    """The same settings with other values of some variables, in whichever group they are."""
    return build(type(settings), **_flat(settings) | values)


def load(declared: type[T], environ: Mapping[str, str], *, alone: bool = True) -> T:
    """Read a dataclass and its groups from the environment.

    Args:
        declared: the dataclass.
        environ: the environment, usually `os.environ`.
        alone: whether a variable with our prefix that `declared` does not know is a mistake.

    Raises:
        SettingsError: naming every bad value and every variable that is a mistake.
    """
    values = read(declared, environ, alone=alone)
    return build(declared, **{value.variable.field: value.value for value in values})


def read(
    declared: type[Any], environ: Mapping[str, str], *, alone: bool = True
) -> list[EffectiveValue]:
    """Read every declared variable; one that is set to nothing counts as not set.

    Args:
        declared: the dataclass.
        environ: the environment, usually `os.environ`.
        alone: whether a variable with our prefix that `declared` does not know is a mistake. It is
            none where `declared` is only a part of all the variables.

    Raises:
        SettingsError: naming every bad value and every variable that is a mistake.
    """
    known = list(variables(declared))
    ours = {
        name: text.strip()
        for name, text in environ.items()
        if text.strip() and not _of_the_platform(name, text)
    }
    values: list[EffectiveValue] = []
    problems: list[str] = []
    for item in known:
        origin = next((name for name in (item.name, item.fallback) if name in ours), None)
        text = ours[origin] if origin else ""
        try:
            value = item.reader.read(text) if origin else item.default
        except (ValueError, OverflowError, RuntimeError, OSError):  # 10**400, ~nobody, …
            given = HIDDEN if item.secret else repr(text)
            problems.append(f"{origin} is {given}; allowed: {item.reader.allowed}.")
        else:
            values.append(EffectiveValue(item, value, origin))
    names = [item.name for item in known]
    unknown = sorted(name for name in ours if name.startswith(PREFIX) and name not in names)
    if alone:
        problems += [f"{name} is not a setting{_did_you_mean(name, names)}" for name in unknown]
    if problems:
        raise SettingsError(problems)
    return values


def _build(declared: type[T], values: dict[str, Any]) -> T:
    """As `build`; what has been used is gone from `values`."""
    made = {}
    for field in dataclasses.fields(declared):  # type: ignore[arg-type]
        if "group" in field.metadata:
            made[field.name] = _build(field.metadata["group"], values)
        elif field.name in values:
            made[field.name] = values.pop(field.name)
    return declared(**made)


def _flat(settings: Any) -> dict[str, Any]:
    """The value of every variable of the settings and their groups."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        found |= _flat(value) if "group" in field.metadata else {field.name: value}
    return found


def _of_the_platform(name: str, value: str) -> bool:
    """Whether a variable only looks like ours.

    For a Service called "ember", Kubernetes gives every pod of its namespace EMBER_SERVICE_HOST,
    EMBER_PORT_80_TCP_ADDR and even EMBER_PORT=tcp://…. EMBER_TEST_… speaks to the test suite,
    EMBER_BUILD_… to the build of images.
    """
    link = r"EMBER_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
    if name == "EMBER_PORT":
        return "://" in value
    return name.startswith(("EMBER_TEST_", "EMBER_BUILD_")) or bool(re.fullmatch(link, name))


def _did_you_mean(name: str, names: list[str]) -> str:
    bare = [known.removeprefix(PREFIX) for known in names]  # the prefix would make all look alike
    near = difflib.get_close_matches(name.removeprefix(PREFIX), bare, 1)
    return f"; did you mean {PREFIX}{near[0]}?" if near else "."
