"""What each part of the gate says of one swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.documented_enum import DocumentedEnum
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


class GateCheck(DocumentedEnum):
    """What is asked before a swap is made, or answered."""

    CONSENT = "consent", "whether it is said who agrees to it"
    CONTENT = "content", "what the target shows"
    OUTPUT = "output", "what the result shows"
    AGE = "age", "whether everybody in it is old enough"
    DENY_LIST = "deny_list", "whether nobody in it is on the deny-list"
    CONSENT_LIST = "consent_list", "whether the source is on the consent-list"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What one check says. It is for the audit and for metrics; callers never see the note.

    Attributes:
        check: which one.
        allowed: whether the swap may be made.
        note: why, in figures or as the id of a list's entry.
        score: of what was looked at; None for what has none.
    """

    check: GateCheck
    allowed: bool
    note: str = ""
    score: float | None = None

    def __str__(self) -> str:
        """For the audit."""
        word = "allowed" if self.allowed else "refused"
        return f"{word} {self.note}" if self.note else word


class GateRefusedError(Problem):
    """The gate refuses a swap. What it tells the caller is the same for every swap of its kind.

    Args:
        code: of the problem.
        detail: a sentence that a caller can act on.
        verdict: why.
        extra: further members of the problem object.

    Attributes:
        verdicts: by check, as the audit writes them.
    """

    def __init__(self, code: str, detail: str, verdict: GateVerdict, **extra: Any) -> None:
        super().__init__(code, detail, **extra)
        self.verdict = verdict
        self.verdicts = by_check([verdict])


def by_check(verdicts: Sequence[GateVerdict]) -> dict[str, str]:
    """Verdicts as the audit writes them; of several of one check the last, or one that refuses."""
    ordered = sorted(verdicts, key=lambda each: not each.allowed)
    return {str(each.check): str(each) for each in ordered}
