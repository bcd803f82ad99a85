"""Where a list of identities is kept: read again when it changes, written by one at a time."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from function.extras import needing
from function.trust.gate.identity_list import IdentityList, IdentityListError, parse
from warmup.objects.errors import ChangedError, NotFoundError, ObjectError
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from function.trust.gate.identity_list import IdentityModel
    from warmup.objects.protocol import ObjectStore

log = logging.getLogger("ember.trust")

LOOK_S = 3.0
"""How often it is looked whether a list has changed."""
_LARGEST = 256 * 1024**2
_MEDIA_TYPE = "application/x-ndjson"
_TRIES = 5
_SILENCE_S = 10.0  # how long an answer may take to come


class KeptList:
    """A list as it was last read in good order.

    A list that cannot be read, or that makes no sense, changes nothing: the one before holds, and
    `problem` says why.

    Args:
        uri: `file:///…` or `gs://…`.
        store: reaches it.
        model: the identity model that serves.
        clock: seconds.

    Attributes:
        people: the list that holds.
        problem: why it is not the latest; None when it is.
    """

    def __init__(
        self,
        uri: str,
        store: ObjectStore,
        model: IdentityModel,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.uri, self._store, self._model, self._clock = uri, store, model, clock
        self.people = IdentityList()
        self.problem: str | None = None
        self._tag = ""
        self._read_at = clock()

    async def start(self) -> None:
        """Read it for the first time.

        Raises:
            SettingsError: it cannot be read.
        """
        try:
            await self._read()
        except (ObjectError, IdentityListError, OSError) as error:
            make = "; `ember deny` and `ember consent` make lists"
            what = f"{str(error).rstrip('.')}{make if isinstance(error, NotFoundError) else ''}"
            raise SettingsError([f"The list {self.uri} cannot be used: {what}."]) from None

    async def look(self) -> None:
        """Read it again, if it has changed."""
        try:
            if (await self._store.stat(self.uri)).tag != self._tag:
                await self._read()
                log.info("a list was read again", extra=self._facts())
            self.problem, self._read_at = None, self._clock()
        except Exception as error:  # whatever it is, the next look has to come
            if self.problem is None:
                facts = self._facts() | {"reason": str(error)}
                log.error("a list stays as it was", extra=facts)  # noqa: TRY400
            self.problem = str(error)

    async def run(self) -> None:
        """Look every few seconds, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    def facts(self) -> dict[str, int | float | str | None]:
        """How it is, for `/readyz`: nobody's name, and nobody's face."""
        return {
            "people": len(self.people.people),
            "seen_s_ago": round(self._clock() - self._read_at, 1),
            "problem": self.problem and "it cannot be read; the one before holds",
        }

    async def close(self) -> None:
        """Close its connections."""
        await self._store.close()

    async def _read(self) -> None:
        found = await self._store.read(self.uri, _LARGEST, lambda _: None)
        people = parse(found.data)
        people.check(self._model)
        self.people, self._tag = people, found.facts.tag

    def _facts(self) -> dict[str, str | int]:
        return {"uri": self.uri, "people": len(self.people.people)}


async def change(
    uri: str, store: ObjectStore, changed: Callable[[IdentityList], IdentityList]
) -> None:
    """Change a list, which is made when there is none.

    Two who change it at once both succeed, one after the other.

    Args:
        uri: where it is.
        store: reaches it.
        changed: the list from what it was; may be called again.

    Raises:
        IdentityListError: what is there makes no sense.
        ObjectError: it cannot be read or written.
    """
    with _alone(uri):
        for left in reversed(range(_TRIES)):
            people, generation = await read(uri, store)
            try:
                await store.write(
                    uri,
                    changed(people).data(),
                    media_type=_MEDIA_TYPE,
                    metadata={},
                    if_generation_match=generation,
                )
            except ChangedError:
                if not left:
                    raise
            else:
                return


async def read(uri: str, store: ObjectStore) -> tuple[IdentityList, int]:
    """A list and its generation; an empty one of generation 0 when there is none."""
    try:
        found = await store.read(uri, _LARGEST, lambda _: None)
    except NotFoundError:
        return IdentityList(), 0
    return parse(found.data), found.facts.generation or 0


def store_of(uri: str) -> ObjectStore:
    """What reaches a list; its folder is made when it is missing.

    Raises:
        SettingsError: what reaches buckets is not installed.
    """
    if uri.startswith("file:"):
        from warmup.objects.local import FileStore

        return FileStore([_path(uri).parent], mode=0o600)
    with needing(f"The list {uri}", "gcs"):
        from warmup.objects.gcs import GcsStore
    return GcsStore(_SILENCE_S)


@contextmanager
def _alone(uri: str) -> Iterator[None]:
    """Hold the lock of a list that is a file: its store compares and replaces in two steps."""
    if not uri.startswith("file:"):
        yield
        return
    path = _path(uri)
    with suppress(FileExistsError):
        path.parent.mkdir(parents=True, mode=0o700)
    fd = os.open(path.parent / f".{path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _path(uri: str) -> Path:
    return Path(url2pathname(urlsplit(uri).path))
