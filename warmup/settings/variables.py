"""Environment variables as typed, documented fields of a dataclass, each declared in one place.

A field made by `variable` carries everything that reading, printing and documenting it needs. The
variables themselves are in `warmup.settings.settings` and `function.settings`.
"""

from __future__ import annotations

import base64
import dataclasses
import difflib
import json
import math
import re
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")

_EXTENSION = re.compile("[a-z0-9]{1,40}")

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
class Reader(Generic[T]):
    """How the text of a variable becomes its value.

    Attributes:
        read: raises ValueError when the text is none of the allowed ones.
        allowed: what is allowed, as the end of the sentence "allowed: …".
    """

    read: Callable[[str], T]
    allowed: str


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
    """Declare a variable as a dataclass field; see `Variable` for the arguments."""
    shown = shown_default if shown_default is not None else str(default).removesuffix(".0")
    facts = {
        "reader": reader,
        "doc": doc,
        "shown_default": shown,
        "fallback": fallback,
        "secret": secret,
    }
    return dataclasses.field(default=default, repr=not secret, metadata=facts)


def variables(declared: type[Any]) -> Iterator[Variable]:
    """Every variable that a dataclass declares, in its order."""
    for field in dataclasses.fields(declared):
        yield Variable(
            field.name, PREFIX + field.name.upper(), default=field.default, **field.metadata
        )


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


def text() -> Reader[str]:
    """Any text without spaces."""

    def parse(given: str) -> str:
        if not given or re.search(r"\s", given):
            raise ValueError(given)
        return given

    return Reader(parse, "text without spaces")


def whole(least: int, most: int) -> Reader[int]:
    """A whole number."""
    return Reader(lambda given: _between(int(given), least, most), f"{least} to {most}")


def seconds(least: float, most: float) -> Reader[float]:
    """A length of time."""
    return Reader(
        lambda given: _between(float(given), least, most),
        f"a number of seconds from {least:g} to {most:g}",
    )


def amount(least: int) -> Reader[int]:
    """A count of bytes or pixels: plain, or with k, M, G (×1000) or Ki, Mi, Gi (×1024), and B."""

    def parse(given: str) -> int:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(?:([kKMG])(i?))?B?", given)
        if not match:
            raise ValueError(given)
        number, power, binary = match.groups()
        unit = (1024 if binary else 1000) ** " KMG".index((power or " ").upper())
        return int(_between(float(number) * unit, least, math.inf))

    return Reader(parse, f"a number from {least} on; 50M, 64MiB and 1.5G are numbers too")


def choice(*words: str) -> Reader[str]:
    """One of a few words, in any case."""

    def parse(given: str) -> str:
        if given.lower() not in words:
            raise ValueError(given)
        return given.lower()

    return Reader(parse, ", ".join(words))


def words(*known: str) -> Reader[tuple[str, ...]]:
    """Some of a few words with commas between them, in any case, each at most once."""

    def parse(given: str) -> tuple[str, ...]:
        found = tuple(word.strip().lower() for word in given.split(","))
        if not set(found) <= set(known) or len(set(found)) < len(found):
            raise ValueError(given)
        return found

    return Reader(parse, f"one or more of {', '.join(known)}, with commas between them")


def part_or_amount() -> Reader[float]:
    """A part of something, as a number from 0 to 1 (1 excluded), or else an `amount`."""
    whole_amount = amount(1)

    def parse(given: str) -> float:
        if re.fullmatch(r"0?\.[0-9]+|0", given):
            return float(given)
        return whole_amount.read(given)

    return Reader(parse, "0.9 for a part, else a number of bytes; 500M and 1.5GiB are numbers too")


def file() -> Reader[Path]:
    """A file that exists."""

    def parse(given: str) -> Path:
        path = Path(given).expanduser()
        if not path.is_file():
            raise ValueError(given)
        return path

    return Reader(parse, "the path of a file that exists")


def secure_url() -> Reader[str]:
    """An https address; http only of this machine."""

    def parse(given: str) -> str:
        parts = urlsplit(given)
        local = parts.scheme == "http" and parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if not (local or (parts.scheme == "https" and parts.hostname)):
            raise ValueError(given)
        return given

    return Reader(parse, "an https:// address; http:// only of this machine")


def web_url() -> Reader[str]:
    """Any http or https address."""

    def parse(given: str) -> str:
        parts = urlsplit(given)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
            raise ValueError(given)
        return given

    return Reader(parse, "an http:// or https:// address")


def extensions() -> Reader[tuple[tuple[str, str], ...]]:
    """Attributes of CloudEvents in the form of K_CE_OVERRIDES."""

    def parse(given: str) -> tuple[tuple[str, str], ...]:
        value = json.loads(given)
        found = value.get("extensions") or {} if isinstance(value, dict) else None
        if not isinstance(found, dict) or not all(map(_EXTENSION.fullmatch, found)):
            raise ValueError(given)
        return tuple((name, str(each)) for name, each in found.items())

    return Reader(parse, 'JSON like {"extensions": {"team": "photos"}}')


def redis_url() -> Reader[str]:
    """The address of a Redis."""

    def parse(given: str) -> str:
        parts = urlsplit(given)
        port = parts.port  # ValueError when it is none
        if parts.scheme not in {"redis", "rediss"} or not parts.hostname or port == 0:
            raise ValueError(given)
        return given

    return Reader(parse, "redis://HOST:PORT/DATABASE, or rediss:// for TLS")


def moment() -> Reader[datetime]:
    """A point in time with its zone."""

    def parse(given: str) -> datetime:
        at = datetime.fromisoformat(given)
        if at.tzinfo is None:
            raise ValueError(given)
        return at

    return Reader(parse, "a time like 2026-11-29T15:04:05Z")


def folder() -> Reader[Path]:
    """A folder, which need not exist yet."""

    def parse(given: str) -> Path:
        path = Path(given).expanduser()
        if path.exists() and not path.is_dir():
            raise ValueError(given)
        return path.absolute()

    return Reader(parse, "the path of a folder")


def folders() -> Reader[tuple[Path, ...]]:
    """Folders that exist, with commas between them."""

    def parse(given: str) -> tuple[Path, ...]:
        found = tuple(Path(each.strip()).expanduser().absolute() for each in given.split(","))
        if not all(path.is_dir() for path in found):
            raise ValueError(given)
        return found

    return Reader(parse, "paths of folders that exist, with commas between them")


def folder_uri() -> Reader[str]:
    """The URI of a folder or of a bucket, perhaps with the beginning of names."""

    def parse(given: str) -> str:
        parts = urlsplit(given)
        good = parts.path.startswith("/") if parts.scheme == "file" else parts.netloc
        if parts.scheme not in {"file", "gs"} or not good or parts.query or parts.fragment:
            raise ValueError(given)
        return given

    return Reader(parse, "a URI like gs://bucket/jobs/ or file:///folder/")


def webhook_secret() -> Reader[str]:
    """A secret of Standard Webhooks."""

    def parse(given: str) -> str:
        prefix, mark, encoded = given.partition("_")
        if (prefix, mark) != ("whsec", "_"):
            raise ValueError(given)
        if not 24 <= len(base64.b64decode(encoded, validate=True)) <= 64:
            raise ValueError(given)
        return given

    return Reader(parse, "whsec_ and 24 to 64 bytes in base64")


def networks() -> Reader[tuple[IPv4Network | IPv6Network, ...]]:
    """Networks of addresses, with commas between them."""

    def parse(given: str) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(each.strip()) for each in given.split(","))

    return Reader(parse, "networks like 10.0.0.0/8 or fd00::/8, with commas between them")


def origins() -> Reader[tuple[str, ...]]:
    """Origins of web pages, with commas between them, in lower case; `*` is every origin."""

    def parse(given: str) -> tuple[str, ...]:
        found = tuple(each.strip().lower() for each in given.split(","))
        if not all(re.fullmatch(r"\*|https?://[^/\s?#@]+", each) for each in found):
            raise ValueError(given)
        return found

    return Reader(parse, "origins like https://app.example, with commas between them; or *")


def place() -> Reader[str]:
    """A bucket, perhaps with a folder in it, or a folder."""

    def parse(given: str) -> str:
        parts = urlsplit(given)
        sound = {"gs": bool(parts.netloc), "file": not parts.netloc, "": given.startswith("/")}
        if not sound.get(parts.scheme):
            raise ValueError(given)
        return given

    return Reader(parse, "gs://bucket, gs://bucket/folder, or the absolute path of a folder")


def places() -> Reader[tuple[str, ...]]:
    """Buckets, perhaps with a prefix of names, with commas between them; `*` is every bucket."""

    def parse(given: str) -> tuple[str, ...]:
        found = tuple(each.strip() for each in given.split(","))
        if not all(re.fullmatch(r"\*|[a-z0-9][a-z0-9._-]{1,221}(/[^,]*)?", each) for each in found):
            raise ValueError(given)
        return found

    return Reader(parse, "buckets like photos or photos/people/, with commas between them; or *")


def names() -> Reader[tuple[str, ...]]:
    """Subjects, and addresses after `email:`, with commas between them; addresses in lower case."""

    def parse(given: str) -> tuple[str, ...]:
        found = tuple(each.strip() for each in given.split(","))
        if not all(re.fullmatch("[!-~]{1,255}", each) for each in found):
            raise ValueError(given)
        return tuple(each.lower() if each.startswith("email:") else each for each in found)

    return Reader(parse, "subjects, and addresses like email:ann@example.com, with commas between")


def switch() -> Reader[bool]:
    """Yes or no."""
    words = {"true": True, "1": True, "yes": True, "on": True}
    words |= {"false": False, "0": False, "no": False, "off": False}

    def parse(given: str) -> bool:
        if given.lower() not in words:
            raise ValueError(given)
        return words[given.lower()]

    return Reader(parse, "true, false")


N = TypeVar("N", int, float)


def _between(number: N, least: float, most: float) -> N:
    if not least <= number <= most:
        raise ValueError(number)
    return number


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
