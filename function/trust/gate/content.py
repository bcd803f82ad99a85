"""From a score to a decision, and when a result has to be looked at again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.trust.gate.verdict import GateCheck, GateVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.faces.face import Face

NEAR = 0.5
"""From this part of the threshold on, a target is so near to it that its result is looked at."""
LARGE = 0.5
"""A result is looked at when its faces cover so much of it."""
LARGE_GENERATED = 0.1
"""The same where a model has generated the faces, and could have generated anything."""


@dataclass(frozen=True, slots=True)
class ContentGate:
    """Decides from scores.

    Attributes:
        threshold: from which on a picture is refused, from 0 to 1.
    """

    threshold: float

    def verdict(self, score: float, check: GateCheck = GateCheck.CONTENT) -> GateVerdict:
        """What a score means. One that is not a number is refused."""
        return GateVerdict(check, score < self.threshold, f"{score:.2f}", score)

    def needs_second_look(self, score: float, covered: float, *, generated: bool) -> bool:
        """Whether the result has to be looked at, too.

        Outside the faces' boxes it is the target, which was looked at. The mesh swap has raised no
        score by more than 0.09 (docs/gate.md), so that a result can be refused only where the
        target was near to it. What a model generates is bounded by the boxes alone.

        Args:
            score: of the target.
            covered: the part of the picture that boxes of swapped faces cover, from 0 to 1.
            generated: whether a model generates the faces.
        """
        large = LARGE_GENERATED if generated else LARGE
        return score >= NEAR * self.threshold or covered >= large


def covered(faces: Sequence[Face], size: tuple[int, int]) -> float:
    """The part of a picture that the boxes of faces cover, at most 1; overlaps count twice.

    Args:
        faces: those that are swapped.
        size: (width, height) of the picture.
    """
    return min(1.0, sum(face.box.area for face in faces) / max(1, size[0] * size[1]))
