"""What requests may do with the objects behind URIs: where they may lead, and how long it may take.

`warmup.objects` reads and writes them. Here is decided which addresses and folders a URI of a
stranger may lead to; what fails in passing is tried again, and what stays wrong becomes a problem.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from function.problems import ObjectNotFoundError, Problem, RetryLaterError
from function.storage import addresses
from warmup.extras import bring
from warmup.objects.errors import (
    ChangedError,
    CompressedError,
    MalformedError,
    NotFoundError,
    RefusedError,
    TooLargeError,
    TransientError,
    UnsupportedError,
)
from warmup.objects.pace import TooSlowError
from warmup.retry import Patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from aiohttp.abc import AbstractResolver

    from function.storage.addresses import Network
    from warmup.objects.protocol import Facts, Object, ObjectStore, Take

log = logging.getLogger("ember.storage")

T = TypeVar("T")

SCHEMES = ("data", "https", "http", "gs", "file")
_TRIES_AGAIN = 4
_SILENCE_S = 10.0  # how long a connection may bring nothing
_CODES: dict[type[RefusedError], str] = {
    TooLargeError: "object_too_large",
    MalformedError: "bad_value",
    UnsupportedError: "unsupported_uri",
    CompressedError: "unsupported_media_type",
    RefusedError: "object_forbidden",
}


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
        self._stores: dict[str, ObjectStore] = {}

    async def stat(self, uri: str) -> Facts | None:
        """What is known about an object; None when there is none.

        Raises:
            Problem: why it cannot be known.
        """
        store = self._store(uri)
        try:
            return await self._patient(lambda: store.stat(uri))
        except ObjectNotFoundError:
            return None

    async def read(self, uri: str, limit: int, take: Take = lambda _: None) -> Object:
        """Read an object.

        Args:
            uri: where it is.
            limit: the most bytes that it may have; no more than that is ever held.
            take: is asked for room before bytes come.

        Raises:
            Problem: why it cannot be read; what `take` raises.
        """
        store = self._store(uri)
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
            return await store.read(uri, limit, take_once)

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
        """Write an object whole or not at all; its generation, where there is such a thing.

        With a precondition, a try whose answer got lost makes the next one fail with
        `ChangedError`: whoever writes has to look whether what is there is its own.

        Raises:
            ChangedError: something else is there than the precondition asks for.
            Problem: why it cannot be done.
        """
        store = self._store(uri)
        return await self._patient(
            lambda: store.write(
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
            Problem: why it cannot be done.
        """
        store = self._store(uri)
        await self._patient(lambda: store.delete(uri))

    async def post(self, uri: str, data: bytes, headers: Mapping[str, str]) -> int:
        """Send something to a web server, once; the status of its answer.

        Raises:
            Problem: the URI is none, or may not be used.
            TransientError: there is no answer.
        """
        from warmup.objects.web import WebStore

        store = self._store(uri)
        if not isinstance(store, WebStore):
            raise Problem("bad_value", "Only https:// URIs can be posted to.")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await store.post(uri, data, headers)
        except RefusedError as error:
            raise problem(error) from error
        except TimeoutError:
            raise TransientError("it takes too long") from None

    async def close(self) -> None:
        """Close all connections."""
        for store in self._stores.values():
            await store.close()
        self._stores.clear()

    def _store(self, uri: str) -> ObjectStore:
        scheme = uri.partition(":")[0].lower()
        scheme = "https" if scheme == "http" else scheme
        if scheme not in self._stores:
            self._stores[scheme] = self._opened(scheme)
        return self._stores[scheme]

    def _opened(self, scheme: str) -> ObjectStore:
        """The store of a scheme, imported when the first URI needs it."""
        match scheme:
            case "data":
                from warmup.objects.data_uri import DataStore

                return DataStore()
            case "https":
                from warmup.objects.web import WebStore

                return WebStore(self._allowed, _SILENCE_S, self._resolver)
            case "file":
                from warmup.objects.local import FileStore

                return FileStore(self._folders)
            case "gs":
                try:
                    from warmup.objects.gcs import GcsStore
                except ModuleNotFoundError as error:
                    raise Problem(
                        "unsupported_uri",
                        f"gs:// URIs need {error.name} on the server.",
                        hint=f"On the server: {bring('gcs')}.",
                    ) from None
                return GcsStore(_SILENCE_S)
        raise Problem(
            "unsupported_uri",
            f"The scheme {scheme[:20]} is not supported; {', '.join(SCHEMES)} are.",
        )

    def _allowed(self, scheme: str, address: str) -> bool:
        return addresses.allowed(scheme, address, self._networks)

    async def _patient(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of the first try that does not fail in passing."""
        patience = Patience(_TRIES_AGAIN)
        try:
            async with asyncio.timeout(self._timeout_s) as clock:
                while True:
                    try:
                        return await attempt()
                    except ChangedError:
                        raise
                    except RefusedError as error:
                        raise problem(error) from error
                    except TransientError as error:
                        if error.public != str(error):
                            log.warning("the store fails", extra={"reason": str(error)})
                        wait_s = patience.wait_s(0, error.retry_after_s)
                        if wait_s is None:
                            raise _unavailable(error.public, error.retry_after_s) from error
                        await asyncio.sleep(wait_s)
        except TimeoutError:
            if not clock.expired():
                raise
            limits = {"limit": self._timeout_s, "setting": "EMBER_URI_TIMEOUT_S"}
            reason = f"that took longer than {self._timeout_s:g} seconds"
            raise _unavailable(reason, 1, **limits) from None


def problem(error: RefusedError) -> Problem:
    """What a caller is answered when an object cannot be read or written."""
    if isinstance(error, NotFoundError):
        return ObjectNotFoundError(error.public)
    if isinstance(error, TooSlowError):
        return RetryLaterError("storage_unavailable", error.public, 60, **error.extra)
    code = next(code for kind, code in _CODES.items() if isinstance(error, kind))
    return Problem(code, error.public, **error.extra)


def _unavailable(reason: str, again_s: float, **extra: object) -> RetryLaterError:
    detail = f"What is behind the URI cannot be reached: {reason}."
    return RetryLaterError("storage_unavailable", detail, again_s, **extra)
