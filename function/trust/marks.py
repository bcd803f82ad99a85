"""What one output carries that tells that it is a swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.trust.statement import SourceType


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one output. All have metadata.

    Attributes:
        source_type: how it says that it was made.
        payload: of the watermark, 12 hexadecimal digits; None where there is none.
        faces: which faces have it, by index; of a clip none, as they move.
        picture: whether the whole picture has it.
        signed_by: the name in the certificate of its C2PA signature; None without one.
        label: the text of the label that can be seen; None without one.
    """

    source_type: SourceType
    payload: str | None = None
    faces: tuple[int, ...] = ()
    picture: bool = False
    signed_by: str | None = None
    label: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same for JSON."""
        watermark = self.payload and {
            "payload": self.payload,
            "faces": list(self.faces),
            "picture": self.picture,
        }
        return {
            "metadata": True,
            "source_type": str(self.source_type),
            "watermark": watermark or None,
            "signature": {"by": self.signed_by} if self.signed_by else None,
            "label": self.label,
        }
