"""The public keys of an issuer of tokens (JWKS, RFC 7517): fetched, kept, and fetched anew.

Keys rotate: one that is not known is looked for at the issuer, but no more often than every half
minute, so that made-up tokens cannot become a flood of requests. When the issuer cannot be
reached, the keys that are known stay good for a day.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

log = logging.getLogger("ember.auth")

FRESH_S, PAUSE_S, LAST_S = 600.0, 30.0, 86400.0
_TIMEOUT_S = 5.0

_ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
# What a key of each type may verify. Secrets (`oct`) are none of an issuer's public keys.


@dataclass(frozen=True, slots=True)
class Key:
    """A public key, and the algorithms of signatures that it may verify."""

    material: Any
    algorithms: tuple[str, ...]


class KeySet:
    """The keys behind one address.

    Args:
        fetch: gets the document; raises what it likes.
        clock: seconds.
    """

    def __init__(
        self, fetch: Callable[[], Awaitable[bytes]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch, self._clock = fetch, clock
        self._keys: dict[str | None, Key] = {}
        self._fetched = self._tried = -float("inf")
        self._lock = asyncio.Lock()
        self._refresh: asyncio.Task[None] | None = None

    async def find(self, identity: str | None) -> Key | None:
        """The key of that `kid`; without one, the only key.

        Raises:
            Problem: `auth_unavailable`, when no keys could be had.
        """
        now = self._clock()
        if identity not in self._keys:
            await self._renew()
        elif now > self._fetched + FRESH_S and now > self._tried + PAUSE_S:
            self._refresh = asyncio.create_task(self._renew())  # those that are known are good yet
        if not self._keys or self._clock() > self._fetched + LAST_S:
            raise Problem(
                "auth_unavailable",
                "The keys that tokens are checked with cannot be had at the moment.",
                headers={"Retry-After": str(round(PAUSE_S))},
            )
        return self._keys.get(identity)

    async def prepare(self) -> None:
        """Fetch the keys before the first token comes."""
        await self._renew()

    async def _renew(self) -> None:
        """Fetch the keys, unless that was tried a moment ago; all callers share one attempt."""
        wanted = self._clock()
        async with self._lock:
            if self._tried > wanted - PAUSE_S:
                return
            self._tried = self._clock()
            try:
                self._keys = keys_of(await self._fetch())
            except Exception as error:
                log.warning("no keys of the issuer", extra={"reason": repr(error)[:200]})
            else:
                self._fetched = self._clock()


def algorithms_of(kind: str) -> tuple[str, ...]:
    """The algorithms of signatures that a key of a type (`kty`) may verify."""
    return _ALGORITHMS.get(kind, ())


def keys_of(document: bytes) -> dict[str | None, Key]:
    """The usable keys of a document by `kid`; a single one also by None.

    Raises:
        ValueError: there is none.
    """
    keys: dict[str | None, Key] = {}
    for each in json.loads(document)["keys"]:
        usual = algorithms_of(each.get("kty"))
        algorithms = tuple(name for name in usual if each.get("alg", name) == name)
        if algorithms and each.get("use", "sig") == "sig":
            try:
                keys[each.get("kid")] = Key(jwt.PyJWK(each).key, algorithms)
            except jwt.PyJWTError:
                continue  # of a kind that is not known here
    if not keys:
        raise ValueError("the document has no public key for signatures")
    if len(keys) == 1:
        keys[None] = next(iter(keys.values()))
    return keys


def fetcher(url: str) -> Callable[[], Awaitable[bytes]]:
    """Get a document by HTTP, without redirects, within 5 seconds."""

    async def fetch() -> bytes:
        import aiohttp

        from warmup.objects.urls import exact

        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.get(exact(url), allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            return await response.read()

    return fetch
