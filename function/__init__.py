"""The serving process: photos in over HTTP, swapped faces out.

`Ember` is the same inside a program, without a server; it is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.library import Ember

__all__ = ["Ember"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name != "Ember":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from function.library import Ember

    return Ember
