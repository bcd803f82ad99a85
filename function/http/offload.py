"""Work that is too long for the event loop: parsing and coding of large bodies and answers.

It needs no compute permit, as it computes no images; what holds the interpreter still lets others
run between its steps.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 256 * 1024
"""So many bytes take less time than going to a thread and coming back may."""


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do `work(*args, **kwargs)`, on a thread when it is about more than `AT_ONCE` bytes."""
    if size <= AT_ONCE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
