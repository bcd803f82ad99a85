"""What became of an event, and the event that tells others of it."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from function.background import facts
from function.background.events.event import CloudEvent
from function.documented_enum import DocumentedEnum
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.background.events.notice import Notice
    from function.background.events.rules import Rule
    from function.telemetry.trace_context import TraceContext

SOURCE = "urn:ember:swap"
SUCCEEDED = "dev.ember.swap.succeeded.v1"
FAILED = "dev.ember.swap.failed.v1"


class OutcomeKind(DocumentedEnum):
    """What became of an event; each has a line of docs/events.md."""

    DONE = "done", "an output was made"
    DUPLICATE = "duplicate", "it had been done before"
    IGNORED = "ignored", "no rule fits, or it tells of no upload, or of an output of ours"
    SUPERSEDED = "superseded", "a newer upload of the same name has taken its place"
    FAILED = "failed", "it can never work; the reason is told"
    ACCEPTED = "accepted", "it will be done, whatever happens to the replica"
    LATER = "later", "it has to be delivered again"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an event.

    Attributes:
        kind: see `OutcomeKind`.
        reason: why, for the log.
        result: the event that tells of it, for `DONE` and `FAILED`, and `DUPLICATE` of these.
        problem: for `FAILED` and `LATER`, and for a `DUPLICATE` of what failed.
    """

    kind: OutcomeKind
    reason: str = ""
    result: CloudEvent | None = None
    problem: Problem | None = None

    @classmethod
    def later(cls, problem: Problem) -> Self:
        """That the event has to be delivered again, and why."""
        return cls(OutcomeKind.LATER, problem.detail, problem=problem)

    def text(self) -> str:
        """What the store keeps."""
        result, problem = self.result, self.problem
        kept: dict[str, Any] = {"kind": self.kind, "reason": self.reason}
        if result:
            kept["result"] = {
                "id": result.id,
                "type": result.type,
                "subject": result.subject,
                "time": result.more["time"],
                "data": result.data,
            }
        if problem:
            kept["problem"] = [problem.code, problem.detail]
        return json.dumps(kept)

    @classmethod
    def duplicate(cls, text: str, trace: TraceContext | None) -> Self:
        """The outcome of a duplicate of an event whose outcome was kept."""
        kept = json.loads(text)
        found, problem = kept.get("result"), kept.get("problem")
        result = None
        if found:
            more = {"time": found["time"]}
            result = CloudEvent(
                found["id"], SOURCE, found["type"], found["data"], found["subject"], trace, more
            )
        return cls(
            OutcomeKind.DUPLICATE,
            kept["reason"] or f"it was {kept['kind']} before",
            result,
            Problem(problem[0], problem[1]) if problem else None,
        )


def succeeded(
    notice: Notice, rule: Rule, trace: TraceContext | None, output: Mapping[str, Any]
) -> CloudEvent:
    """The event that tells of an output."""
    return _event(SUCCEEDED, notice, rule, trace, {"output": output})


def failed(notice: Notice, rule: Rule, trace: TraceContext | None, problem: Problem) -> CloudEvent:
    """The event that tells why there is none."""
    return _event(FAILED, notice, rule, trace, {"problem": facts.of_problem(problem)})


def _event(
    type_: str, notice: Notice, rule: Rule, trace: TraceContext | None, data: Mapping[str, Any]
) -> CloudEvent:
    """Its id follows from the upload, so that whoever gets it twice can tell."""
    digest = hashlib.sha256(f"{type_}\n{notice.store}\n{notice.key}".encode()).hexdigest()[:32]
    return CloudEvent(
        digest,
        SOURCE,
        type_,
        {"input": {"uri": notice.uri}, "rule": rule.name, **data},
        notice.uri,
        trace,
        {"time": facts.moment(time.time())},
    )
