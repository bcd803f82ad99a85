"""What jobs and events both say of problems and times: plain values, ready for JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.problems import Problem


def of_problem(problem: Problem) -> dict[str, Any]:
    """A problem without its request."""
    return {
        "code": problem.code,
        "title": problem.kind.title,
        "detail": problem.detail,
        "hint": problem.hint,
    }


def moment(seconds: float) -> str:
    """A Unix time in RFC 3339, to the millisecond."""
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
