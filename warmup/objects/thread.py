"""Blocking work beside the event loop, in threads that may be given up.

`asyncio.to_thread` would not do: the process waits for its threads when it ends, and a read from a
server that has stopped answering may last for ever.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """The result of `work`, which goes on by itself when the caller is cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            tell(done.set_exception, error)
        else:
            tell(done.set_result, result)

    def tell(setter: Callable[..., None], outcome: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: None if done.done() else setter(outcome))

    threading.Thread(target=run, name="fetch", daemon=True).start()
    return await done
