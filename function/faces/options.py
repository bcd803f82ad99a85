"""How the result of a swap is to be, as far as the models of a replica give a choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

BLEND = 80
"""How much of an enhanced face is used by default, in percent."""
SMALLEST = 1
"""A boost that leaves faces at the side that the model makes."""


class Mask(StrEnum):
    """What decides which part of a face is replaced; of several, all have to agree."""

    BOX = "box"
    OCCLUSION = "occlusion"
    AREA = "area"
    REGION = "region"


@dataclass(frozen=True, slots=True)
class SwapOptions:
    """What a caller may choose.

    Attributes:
        boost: the side in pixels up to which a swapped face is made, in whole multiples of what the
            model makes; None for as much as the face needs, up to 256.
        weight: how much of the source's identity there is: 0.5 as it is, 1 the target's own is
            even taken away, 0 a third of the way to the target's.
        enhance: how much of an enhanced face is used, in percent; 0 for none.
        masks: what decides, with `box`, which part is replaced; None for what the replica has.
    """

    boost: int | None = None
    weight: float = 0.5
    enhance: int = BLEND
    masks: tuple[Mask, ...] | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Read the fields of a request, of which each may be missing.

        Raises:
            Problem: `bad_value`.
        """
        weight, masks = values.get("weight"), values.get("masks")
        return cls(
            boost=values.get("boost"),
            weight=0.5 if weight is None else weight / 100,
            enhance=values.get("enhance", BLEND),
            masks=None if masks is None else parse_masks(masks),
        )

    def uses(self, mask: Mask, *, else_: bool = False) -> bool:
        """Whether a mask is to be used; `else_` is the answer where the caller has not chosen."""
        return else_ if self.masks is None else mask in self.masks


DEFAULT = SwapOptions()
"""The options where the caller chooses nothing."""


def parse_masks(text: str) -> tuple[Mask, ...]:
    """Read `box,occlusion,area,region` or some of that.

    Raises:
        Problem: `bad_value` for anything else.
    """
    words = [word.strip() for word in text.split(",")]
    if unknown := [word for word in words if word not in set(Mask)]:
        raise Problem(
            "bad_value",
            f"`masks` has {', '.join(Mask)}, with commas between them; not {unknown[0][:80]!r}.",
            field="masks",
            allowed=list(Mask),
        )
    return tuple(dict.fromkeys(Mask(word) for word in words))
