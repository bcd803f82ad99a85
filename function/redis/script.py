"""Lua scripts that run inside Redis."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

from redis.exceptions import NoScriptError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from function.redis.client import Client


class Script:
    """A Lua script; each call of it is one decision, atomic, and one round trip.

    Args:
        client: asks.
        path: the script.
    """

    def __init__(self, client: Client, path: Path) -> None:
        self._client, self._text = client, path.read_bytes()
        self._sha = hashlib.sha1(self._text).hexdigest()  # noqa: S324 (what Redis calls it)

    async def __call__(
        self,
        keys: Sequence[str],
        arguments: Sequence[str | bytes | int],
        *,
        idempotent: bool = False,
    ) -> list[Any]:
        """The answer, a list; raises what `Client.execute` raises."""
        execute = partial(self._client.execute, idempotent=idempotent)
        words = (len(keys), *keys, *arguments)
        try:
            return list(await execute("EVALSHA", self._sha, *words))
        except NoScriptError:  # nothing was done
            return list(await execute("EVAL", self._text, *words))
