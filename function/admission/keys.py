"""API keys: a file that has a line for each of them, and never the key itself.

A key is `ember_ID_SECRET`. The secret has 256 random bits, so one round of SHA-256 protects it:
there is nothing to guess. A line is `ID SHA-256 SUBJECT TIER [LANE]`; what follows a # is a
comment. The file is read again when it has changed, so that a key can be withdrawn without a
restart.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.admission.caller import SUBJECT, Caller, RejectedError
from function.request_context import Lane
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger("ember.auth")

_KEY = re.compile(r"ember_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_ID, _DIGEST, _TIER = re.compile(r"[0-9a-f]{12}"), re.compile(r"[0-9a-f]{64}"), re.compile(r"\S+")
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One line of the file."""

    digest: str
    caller: Caller


_NOBODY = KeyEntry("0" * 64, Caller("nobody"))


class ApiKeys:
    """The keys of a file.

    Args:
        path: the file.
        clock: seconds.

    Raises:
        SettingsError: the file cannot be read, or a line makes no sense.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._looked = clock()
        self._state = self._stat()
        self._entries = read(path)

    async def caller(self, credentials: str) -> Caller:
        """Who has these credentials."""
        self._look()
        match = _KEY.fullmatch(credentials)
        entry = self._entries.get(match[1], _NOBODY) if match else _NOBODY
        if not hmac.compare_digest(_digest(credentials), entry.digest):
            raise RejectedError("The key is not known.")
        return entry.caller

    async def prepare(self) -> None:
        """Get ready for the first caller."""

    def _look(self) -> None:
        """Read the file again if it has changed; a file that makes no sense changes nothing."""
        if self._clock() < self._looked + _LOOK_S:
            return
        self._looked = self._clock()
        if (state := self._stat()) == self._state:
            return
        self._state = state
        try:
            self._entries = read(self._path)
        except SettingsError as error:
            log.error("the keys stay as they were", extra={"reason": str(error)})  # noqa: TRY400
        else:
            log.info("keys read", extra={"count": len(self._entries)})

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def new(subject: str, tier: str, lane: Lane | None = None) -> tuple[str, str]:
    """A new key, and its line for the file."""
    number = secrets.token_hex(6)
    key = f"ember_{number}_{secrets.token_urlsafe(32)}"
    return key, " ".join(filter(None, (number, _digest(key), subject, tier, lane)))


def read(path: Path) -> dict[str, KeyEntry]:
    """The entries of a file, by the keys' ids.

    Raises:
        SettingsError: naming each line that makes no sense.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingsError([f"The keys in {path} cannot be read: {reason}."]) from None
    entries: dict[str, KeyEntry] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        patterns = (_ID, _DIGEST, SUBJECT, _TIER)
        sound = all(map(re.Pattern.fullmatch, patterns, words))
        if not sound or len(words) not in {4, 5} or (len(words) == 5 and words[4] not in set(Lane)):
            problems.append(f"{path}, line {number}, is not `ID SHA-256 SUBJECT TIER [LANE]`.")
        elif words[0] in entries:
            problems.append(f"{path}, line {number}, has the id of an earlier line.")
        else:
            identity, digest, *caller = words
            entries[identity] = KeyEntry(digest, Caller(*caller))
    if problems:
        raise SettingsError(problems)
    return entries


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
