"""The kinds of values that an environment variable can have, and how each is read from its text."""

from __future__ import annotations

import base64
import json
import math
import re
import shlex
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
N = TypeVar("N", int, float)

_EXTENSION = re.compile("[a-z0-9]{1,40}")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SWITCH = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(
    ("false", "0", "no", "off"), False
)


@dataclass(frozen=True, slots=True)
class Reader(Generic[T]):
    """How the text of a variable becomes its value.

    Attributes:
        read: raises ValueError when the text is none of the allowed ones.
        allowed: what is allowed, as the end of the sentence "allowed: …".
    """

    read: Callable[[str], T]
    allowed: str


def text() -> Reader[str]:
    """Any text without spaces."""
    return _text(lambda given: given and not re.search(r"\s", given), "text without spaces")


def line(most: int) -> Reader[str]:
    """One line of text, which may have spaces."""

    def sound(given: str) -> bool:
        return 0 < len(given) <= most and given.isprintable()

    return _text(sound, f"one line of text, of {most} characters at most")


def command() -> Reader[tuple[str, ...]]:
    """A command and its arguments, as a shell would read them; no shell runs it."""

    def parse(given: str) -> tuple[str, ...]:
        words = tuple(shlex.split(given))
        if not words:
            raise ValueError(given)
        return words

    return Reader(parse, "a command and its arguments")


def whole(least: int, most: int) -> Reader[int]:
    """A whole number."""
    return Reader(lambda given: _between(int(given), least, most), f"{least} to {most}")


def seconds(least: float, most: float) -> Reader[float]:
    """A length of time in seconds."""
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


def part_or_amount() -> Reader[float]:
    """A part of something, as a number from 0 to 1 (1 excluded), or else an `amount`."""
    whole_amount = amount(1)

    def parse(given: str) -> float:
        if re.fullmatch(r"0?\.[0-9]+|0", given):
            return float(given)
        return whole_amount.read(given)

    return Reader(parse, "0.9 for a part, else a number of bytes; 500M and 1.5GiB are numbers too")


def switch() -> Reader[bool]:
    """Yes or no."""

    def parse(given: str) -> bool:
        if given.lower() not in _SWITCH:
            raise ValueError(given)
        return _SWITCH[given.lower()]

    return Reader(parse, "true, false")


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


def moment() -> Reader[datetime]:
    """A point in time with its zone."""

    def parse(given: str) -> datetime:
        at = datetime.fromisoformat(given)
        if at.tzinfo is None:
            raise ValueError(given)
        return at

    return Reader(parse, "a time like 2026-11-29T15:04:05Z")


def file() -> Reader[Path]:
    """A file that exists."""

    def parse(given: str) -> Path:
        path = Path(given).expanduser()
        if not path.is_file():
            raise ValueError(given)
        return path

    return Reader(parse, "the path of a file that exists")


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

    def parse(given: str) -> Path:
        path = Path(given).expanduser().absolute()
        if not path.is_dir():
            raise ValueError(given)
        return path

    return _list(parse, "paths of folders that exist, with commas between them")


def folder_uri() -> Reader[str]:
    """The URI of a folder or of a bucket, perhaps with the beginning of names."""

    def sound(given: str) -> bool:
        parts = urlsplit(given)
        place = parts.path.startswith("/") if parts.scheme == "file" else bool(parts.netloc)
        return parts.scheme in {"file", "gs"} and place and not parts.query + parts.fragment

    return _text(sound, "a URI like gs://bucket/jobs/ or file:///folder/")


def place() -> Reader[str]:
    """A bucket, perhaps with a folder in it, or a folder."""

    def sound(given: str) -> bool:
        parts = urlsplit(given)
        kinds = {"gs": bool(parts.netloc), "file": not parts.netloc, "": given.startswith("/")}
        return kinds.get(parts.scheme, False)

    return _text(sound, "gs://bucket, gs://bucket/folder, or the absolute path of a folder")


def places() -> Reader[tuple[str, ...]]:
    """Buckets, perhaps with a prefix of names, with commas between them; `*` is every bucket."""
    return _list(
        _matching(r"\*|[a-z0-9][a-z0-9._-]{1,221}(/[^,]*)?"),
        "buckets like photos or photos/people/, with commas between them; or *",
    )


def web_url() -> Reader[str]:
    """Any http or https address."""

    def sound(given: str) -> bool:
        parts = urlsplit(given)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0

    return _text(sound, "an http:// or https:// address")


def secure_url() -> Reader[str]:
    """An https address; http only of this machine."""

    def sound(given: str) -> bool:
        parts = urlsplit(given)
        local = parts.scheme == "http" and parts.hostname in _LOOPBACK
        return bool(parts.hostname) and (local or parts.scheme == "https")

    return _text(sound, "an https:// address; http:// only of this machine")


def redis_url() -> Reader[str]:
    """The address of a Redis."""

    def sound(given: str) -> bool:
        parts = urlsplit(given)
        return parts.port != 0 and parts.scheme in {"redis", "rediss"} and bool(parts.hostname)

    return _text(sound, "redis://HOST:PORT/DATABASE, or rediss:// for TLS")


def origins() -> Reader[tuple[str, ...]]:
    """Origins of web pages, with commas between them, in lower case; `*` is every origin."""
    matching = _matching(r"\*|https?://[^/\s?#@]+")
    return _list(
        lambda given: matching(given.lower()),
        "origins like https://app.example, with commas between them; or *",
    )


def networks() -> Reader[tuple[IPv4Network | IPv6Network, ...]]:
    """Networks of addresses, with commas between them."""
    return _list(ip_network, "networks like 10.0.0.0/8 or fd00::/8, with commas between them")


def names() -> Reader[tuple[str, ...]]:
    """Subjects, and addresses after `email:`, with commas between them; addresses in lower case."""
    matching = _matching("[!-~]{1,255}")
    return _list(
        lambda given: matching(given.lower() if given.startswith("email:") else given),
        "subjects, and addresses like email:ann@example.com, with commas between",
    )


def webhook_secret() -> Reader[str]:
    """A secret of Standard Webhooks."""

    def sound(given: str) -> bool:
        encoded = given.removeprefix("whsec_")
        return encoded != given and 24 <= len(base64.b64decode(encoded, validate=True)) <= 64

    return _text(sound, "whsec_ and 24 to 64 bytes in base64")


def extensions() -> Reader[tuple[tuple[str, str], ...]]:
    """Attributes of CloudEvents in the form of K_CE_OVERRIDES."""

    def parse(given: str) -> tuple[tuple[str, str], ...]:
        value = json.loads(given)
        found = value.get("extensions") or {} if isinstance(value, dict) else None
        if not isinstance(found, dict) or not all(map(_EXTENSION.fullmatch, found)):
            raise ValueError(given)
        return tuple((name, str(each)) for name, each in found.items())

    return Reader(parse, 'JSON like {"extensions": {"team": "photos"}}')


def _text(sound: Callable[[str], object], allowed: str) -> Reader[str]:
    """A reader that takes a text as it is when it is sound."""

    def parse(given: str) -> str:
        if not sound(given):
            raise ValueError(given)
        return given

    return Reader(parse, allowed)


def _list(parse: Callable[[str], T], allowed: str) -> Reader[tuple[T, ...]]:
    """A reader of several values with commas between them."""
    return Reader(lambda given: tuple(parse(each.strip()) for each in given.split(",")), allowed)


def _matching(pattern: str) -> Callable[[str], str]:
    def parse(given: str) -> str:
        if not re.fullmatch(pattern, given):
            raise ValueError(given)
        return given

    return parse


def _between(number: N, least: N, most: float) -> N:
    if not least <= number <= most:
        raise ValueError(number)
    return number
