"""`https://` and `http://` URIs of strangers, with aiohttp.

Whether one may lead to an address is asked for the address of each socket before it connects, after
names were resolved and for every redirect, so that no name can mean something else a moment later.
No proxy, cookie or credentials of Ember are ever used.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import aiohttp

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
from warmup.objects.fair_semaphore import FairSemaphore
from warmup.objects.pace import Pace
from warmup.objects.protocol import Facts, Object
from warmup.objects.urls import exact
from warmup.retry import PASSING, retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aiohttp.abc import AbstractResolver
    from aiohttp.typedefs import LooseHeaders
    from yarl import URL

    from warmup.objects.protocol import Take

_REDIRECTS = {301, 302, 303, 307, 308}
_FOLLOWED = {"GET", "HEAD"}
_POOLS = {"GET": "read", "HEAD": "read", "PUT": "write", "DELETE": "write", "POST": "tell"}
_PLACES = {"read": (128, 16), "write": (64, 16), "tell": (32, 4)}
"""How many connections each kind of call has for itself, and of them for one host."""
_MOST_REDIRECTS = 5
_METADATA = re.compile(r"x-(?:amz|goog)-meta-(.+)")
_REFUSED = {401, 402, 403, 407, 451}


class NotAllowedError(OSError):
    """A socket was to be connected to an address that is not for strangers."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "not a public address")


class WebStore:
    """An `ObjectStore` of web servers. Writing is a PUT, as signed URLs of object stores take it.

    Args:
        allowed: whether a scheme (`https` or `http`) may lead to an address.
        silence_s: how long a connection may bring nothing.
        resolver: finds the addresses of hosts; None for the system's.
    """

    def __init__(
        self,
        allowed: Callable[[str, str], bool],
        silence_s: float,
        resolver: AbstractResolver | None,
    ) -> None:
        self._allowed, self._silence_s, self._resolver = allowed, silence_s, resolver
        self._trust: ssl.SSLContext | None = None
        self._sessions: dict[tuple[str, str], aiohttp.ClientSession] = {}
        self._places = {pool: FairSemaphore(every, each) for pool, (every, each) in _PLACES.items()}

    async def stat(self, uri: str) -> Facts:
        """Size, media type and metadata, as the headers have them."""
        async with self._answer("HEAD", uri) as response:
            return _facts(response)

    async def read(self, uri: str, limit: int, take: Take) -> Object:
        """Read it, unless it is too large, compressed or comes too slowly."""
        async with self._answer("GET", uri) as response:
            facts = _facts(response)
            if facts.size is not None:
                if facts.size > limit:
                    raise TooLargeError(limit, facts.size)
                take(facts.size)
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise CompressedError(
                    "What is behind the URI comes compressed (Content-Encoding).",
                    hint="Photos already are; store the file as it is.",
                )
            data = bytearray()
            clock = asyncio.get_running_loop().time
            pace = Pace(str(response.url.host), clock())
            async for chunk in response.content.iter_any():
                pace.note(len(chunk), clock())
                if len(data) + len(chunk) > limit:
                    raise TooLargeError(limit)
                if facts.size is None:
                    take(len(chunk))
                data += chunk
            return Object(bytes(data), facts)

    async def write(
        self,
        uri: str,
        data: bytes,
        *,
        media_type: str,
        metadata: Mapping[str, str],  # noqa: ARG002 (each store has headers of its own for it)
        if_generation_match: int | None,
    ) -> int | None:
        """Write it; the only precondition that there is here is 0."""
        headers = {"Content-Type": media_type}
        if if_generation_match:
            raise UnsupportedError("Behind https:// URIs there are no generations.")
        if if_generation_match == 0:
            headers["If-None-Match"] = "*"
        async with self._answer("PUT", uri, headers=headers, data=data):
            return None

    async def delete(self, uri: str) -> None:
        """Delete it; that there is nothing is fine."""
        with suppress(NotFoundError):
            async with self._answer("DELETE", uri):
                pass

    async def post(self, uri: str, data: bytes, headers: Mapping[str, str]) -> int:
        """Send something; the status of the answer, whatever it is.

        Raises:
            RefusedError: the URI is none, or may not be used.
            TransientError: there is no answer.
        """
        async with self._answer("POST", uri, headers, data) as response:
            return response.status

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()

    @asynccontextmanager
    async def _answer(
        self, method: str, uri: str, headers: LooseHeaders | None = None, data: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The good answer, after redirects where something is read; to a POST, any answer."""
        url, pool = checked(uri), _POOLS[method]
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                session = await self._session(url.scheme, pool)
                async with self._places[pool].place(url.host or ""):
                    # A head may drip as well; what is sent along takes as long as it takes.
                    async with asyncio.timeout(None if data else self._silence_s):
                        response = await session.request(
                            method, url, headers=headers, data=data, allow_redirects=False
                        )
                    async with response:
                        if response.status not in _REDIRECTS or method not in _FOLLOWED:
                            if method != "POST":
                                _check(response)
                            yield response
                            return
                        url = _next(response)
        except aiohttp.ClientConnectorCertificateError as error:
            raise RefusedError(f"The certificate of {url.host} is not good.") from error
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, NotAllowedError):
                raise RefusedError(_why(url)) from None
            if isinstance(error, aiohttp.ClientConnectorDNSError) and _unknown(error.os_error):
                raise NotFoundError(f"There is no host {url.host}.") from None
            raise TransientError(f"no connection to {url.host}") from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise MalformedError("The URI is malformed.") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"{url.host} broke off ({type(error).__name__})") from error
        raise NotFoundError(f"The URI leads to more than {_MOST_REDIRECTS} redirects.")

    async def _session(self, scheme: str, pool: str) -> aiohttp.ClientSession:
        """The session for a scheme and a kind of call; each has connections of its own.

        Each scheme may go elsewhere, and reading holds up no callback.
        """
        if self._trust is None:  # reading all authorities takes a while
            self._trust = await asyncio.to_thread(ssl.create_default_context)
        if (scheme, pool) not in self._sessions:
            patience = self._silence_s
            self._sessions[scheme, pool] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=self._trust,
                    resolver=self._resolver,
                    use_dns_cache=False,
                    limit=0,  # `_PLACES` limits them
                    socket_factory=lambda info: self._socket(scheme, info),
                ),
                timeout=aiohttp.ClientTimeout(None, sock_connect=patience, sock_read=patience),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"Accept-Encoding": "identity", "User-Agent": "ember"},
            )
        return self._sessions[scheme, pool]

    def _socket(self, scheme: str, info: aiohttp.AddrInfoType) -> socket.socket:
        """A socket for an address that will be connected to, if it may be."""
        family, kind, protocol, _, address = info
        host = str(address[0])
        if not self._allowed(scheme, host):
            raise NotAllowedError
        return socket.socket(family, kind, protocol)


def checked(uri: str) -> URL:
    """The URI, when it is one that may be asked for.

    Raises:
        MalformedError: it is none.
        RefusedError: it has a user or a password in it.
    """
    try:
        url = exact(uri)
        good = url.scheme in {"https", "http"} and url.host and url.port
    except ValueError:
        good = False
    if not good:
        raise MalformedError("The URI is malformed.")
    if url.user is not None or url.password is not None:
        raise RefusedError("The URI has a user or a password in it; use a signed URL instead.")
    return url.with_fragment(None)


def _next(response: aiohttp.ClientResponse) -> URL:
    """Where a redirect leads; never from https to http."""
    try:
        url = response.url.join(exact(response.headers["Location"]))
    except (KeyError, ValueError):
        raise NotFoundError("The URI leads to a redirect that leads nowhere.") from None
    if url.scheme not in {"https", "http"} or (response.url.scheme, url.scheme) == (
        "https",
        "http",
    ):
        raise RefusedError("The URI leads to a redirect to something that is not https://.")
    return checked(str(url))


def _unknown(error: OSError) -> bool:
    """Whether a name is known not to exist, rather than not known for now."""
    return isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME


def _why(url: URL) -> str:
    if url.scheme == "http":
        return f"http:// may not lead to {url.host}; use https://."
    return f"{url.host} has no public address."


def _check(response: aiohttp.ClientResponse) -> None:
    status = response.status
    if 200 <= status < 300 and status != 206:
        return
    reason = f"{response.url.host} answers {status}"
    if status in PASSING:
        raise TransientError(reason, retry_after(response.headers.get("Retry-After", "")))
    if status in {409, 412} and response.method == "PUT":
        raise ChangedError
    if status in _REFUSED:
        raise RefusedError(f"{reason}: the URI may not be used.")
    raise NotFoundError(f"{reason}: there is nothing for us at the URI.")


def _facts(response: aiohttp.ClientResponse) -> Facts:
    declared = "Content-Type" in response.headers
    metadata = {
        match[1]: value
        for name, value in response.headers.items()
        if (match := _METADATA.fullmatch(name.lower()))
    }
    media_type = response.content_type if declared else None
    return Facts(response.content_length, media_type=media_type, metadata=metadata)
