"""The storage: finds the place that a URI leads to, and tries again what fails in passing.

A place is made when the first URI needs it, so that what it imports costs nobody else.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, TypeVar

from function.problems import Problem
from warmup.objects.retry import Patience
from warmup.objects.source import TransientError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from aiohttp.abc import AbstractResolver

    from function.storage.addresses import Network
    from function.storage.place import Facts, Object, Place, Take

T = TypeVar("T")

SCHEMES = ("data", "https", "http", "gs", "file")
_TRIES_AGAIN = 4
_SILENCE_S = 10.0  # how long a connection may bring nothing


class Storage:
    """Reads and writes what URIs lead to.

    Args:
        networks: networks that are not public and that `https://` and `http://` may lead to.
        folders: what `file://` may lead into.
        timeout_s: how long one call may take, with all of its tries.
        resolver: finds the addresses of hosts; None for the system's.
    """

    def __init__(
        self,
        *,
        networks: Sequence[Network] = (),
        folders: Sequence[Path] = (),
        timeout_s: float = 30.0,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._networks, self._folders, self._resolver = networks, folders, resolver
        self._timeout_s = timeout_s
        self._places: dict[str, Place] = {}

    async def stat(self, uri: str) -> Facts | None:
        """What is known about an object; None when there is none.

        Raises:
            Problem: see `Place`; `storage_unavailable`.
        """
        place = self._place(uri)
        try:
            return await self._patient(lambda: place.stat(uri))
        except Problem as problem:
            if problem.code == "object_not_found":
                return None
            raise

    async def read(self, uri: str, limit: int, take: Take = lambda _: None) -> Object:
        """Read an object; see `Place.read`.

        Raises:
            Problem: see `Place`; `storage_unavailable`; what `take` raises.
        """
        place = self._place(uri)
        taken = asked = 0

        def take_once(size: int) -> None:
            """Another try has the room that the one before has taken."""
            nonlocal taken, asked
            asked += size
            if asked > taken:
                take(asked - taken)
                taken = asked

        async def attempt() -> Object:
            nonlocal asked
            asked = 0
            return await place.read(uri, limit, take_once)

        return await self._patient(attempt)

    async def write(
        self,
        uri: str,
        data: bytes,
        *,
        media_type: str,
        metadata: Mapping[str, str] | None = None,
        if_generation_match: int | None = None,
    ) -> int | None:
        """Write an object; see `Place.write`.

        With a precondition, a try whose answer got lost makes the next one fail with
        `ChangedError`: whoever writes has to look whether what is there is its own.

        Raises:
            ChangedError: something else is there than the precondition asks for.
            Problem: see `Place`; `storage_unavailable`.
        """
        place = self._place(uri)
        return await self._patient(
            lambda: place.write(
                uri,
                data,
                media_type=media_type,
                metadata=metadata or {},
                if_generation_match=if_generation_match,
            )
        )

    async def delete(self, uri: str) -> None:
        """Delete an object; there may be none.

        Raises:
            Problem: see `Place`; `storage_unavailable`.
        """
        place = self._place(uri)
        await self._patient(lambda: place.delete(uri))

    async def post(self, uri: str, data: bytes, headers: Mapping[str, str]) -> int:
        """Send something to a web server, once; the status of its answer.

        Raises:
            Problem: the URI is none, or may not be used.
            TransientError: there is no answer.
        """
        from function.storage.web import Web

        place = self._place(uri)
        if not isinstance(place, Web):
            raise Problem("bad_value", "Only https:// URIs can be posted to.")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await place.post(uri, data, headers)
        except TimeoutError:
            raise TransientError("it takes too long") from None

    async def close(self) -> None:
        """Close all connections."""
        for place in self._places.values():
            await place.close()
        self._places.clear()

    def _place(self, uri: str) -> Place:
        scheme = uri.partition(":")[0].lower()
        scheme = "https" if scheme == "http" else scheme
        if scheme not in self._places:
            self._places[scheme] = self._made(scheme)
        return self._places[scheme]

    def _made(self, scheme: str) -> Place:
        match scheme:
            case "data":
                from function.storage.inline import Inline

                return Inline()
            case "https":
                from function.storage.web import Web

                return Web(self._networks, _SILENCE_S, self._resolver)
            case "file":
                from function.storage.local import Local

                return Local(self._folders)
            case "gs":
                try:
                    from function.storage.gcs import Gcs
                except ModuleNotFoundError as error:
                    raise Problem(
                        "unsupported_uri",
                        f"gs:// URIs need {error.name} on the server.",
                        hint="On the server: pip install 'ember-function[gcs]'.",
                    ) from None
                return Gcs(_SILENCE_S)
        raise Problem(
            "unsupported_uri",
            f"The scheme {scheme[:20]} is not supported; {', '.join(SCHEMES)} are.",
        )

    async def _patient(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of the first try that does not fail in passing."""
        patience = Patience(_TRIES_AGAIN)
        try:
            async with asyncio.timeout(self._timeout_s) as clock:
                while True:
                    try:
                        return await attempt()
                    except TransientError as error:
                        wait_s = patience.wait_s(0, error.retry_after_s)
                        if wait_s is None:
                            raise _unavailable(str(error), error.retry_after_s) from error
                        await asyncio.sleep(wait_s)
        except TimeoutError:
            if not clock.expired():
                raise
            problem = _unavailable(f"that took longer than {self._timeout_s:g} seconds", 1)
            problem.extra |= {"limit": self._timeout_s, "setting": "EMBER_URI_TIMEOUT_S"}
            raise problem from None


def _unavailable(reason: str, again_s: float) -> Problem:
    return Problem(
        "storage_unavailable",
        f"What is behind the URI cannot be reached: {reason}.",
        headers={"Retry-After": str(max(1, math.ceil(again_s)))},
    )
