"""What a file carries that tells whether it is a swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.documented_enum import DocumentedEnum

if TYPE_CHECKING:
    from collections.abc import Mapping


class Finding(DocumentedEnum):
    """What follows from what a file carries."""

    SWAP = "swap", "it says that it is a swap, or a watermark does"
    UNKNOWN = "unknown", "nothing says so, which proves nothing"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a file carries.

    Attributes:
        media_type: of the file.
        size: (width, height) in pixels, upright; zeros where its pixels cannot be read.
        signature: who signed it, and whether it is as it was then; None without one.
        metadata: what it says of itself; None for nothing.
        watermarks: those that were read.
        says_swap: whether metadata or a signature of Ember's say that it is a swap.
        lost: what it had when it was made here, and has no more.
        notes: what was not looked at, and why.
    """

    media_type: str
    size: tuple[int, int]
    signature: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None
    watermarks: tuple[Mapping[str, Any], ...]
    says_swap: bool
    lost: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def finding(self) -> Finding:
        """What follows from it."""
        return Finding.SWAP if self.says_swap or self.watermarks else Finding.UNKNOWN

    def facts(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "media_type": self.media_type,
            "width": self.size[0],
            "height": self.size[1],
            "verdict": str(self.finding),
            "signature": self.signature,
            "metadata": self.metadata,
            "watermarks": list(self.watermarks),
            "lost": list(self.lost),
            "notes": list(self.notes),
        }
