"""Events as they are delivered: each is answered in time, and worked on once."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.background.events.dedup import EventKeys, EventState
from function.background.events.outcome import Outcome, OutcomeKind
from function.background.events.worker import ClaimedEvent, EventWorker
from function.background.records import RecordStoreError
from function.problems import Problem, RetryLaterError
from function.telemetry import trace_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.background.events.dedup import DedupStore
    from function.background.events.event import CloudEvent
    from function.background.events.notice import Notice
    from function.background.events.rules import Rule
    from function.background.events.sink import EventSink
    from function.background.events.writer import OutputWriter

log = logging.getLogger("ember.events")

_AGAIN_S = 5.0
"""When to deliver an event again that is being worked on, or has no room."""


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """The limits of an event processor.

    Attributes:
        ack_s: after how long an event is answered though it is not done.
        lease_s: after how long somebody else may go on with an event when nothing is heard of it.
        limit: how many events may be at hand.
        slots: how many are worked on at once; the others hold no photos.
    """

    ack_s: float
    lease_s: float
    limit: int
    slots: int


class EventProcessor:
    """Takes events in.

    Args:
        writer: makes outputs.
        store: remembers events.
        sink: where result events go; None where they are the answer.
        refusal: for how many seconds nothing more is to be taken in; None for not at all.
        settings: its limits.

    Attributes:
        listeners: called with the outcome of each event that was taken in.
        answers_results: whether result events are the answer.
    """

    def __init__(
        self,
        writer: OutputWriter,
        store: DedupStore,
        sink: EventSink | None,
        refusal: Callable[[], float | None],
        settings: ProcessorSettings,
    ) -> None:
        self._store, self._refusal, self._settings = store, refusal, settings
        self._worker = EventWorker(writer, store, sink, settings.lease_s, settings.slots)
        self._running = self._worker.running
        self.answers_results = sink is None
        self.listeners: list[Callable[[Outcome], None]] = []

    async def take(self, event: CloudEvent, began: float) -> Outcome:
        """Take an event in.

        Args:
            event: the event.
            began: when its request came, by the clock of the loop; the answer comes within `ack_s`
                from then on, and the short time that questions to the store may take.
        """
        trace_context.current.set(trace_context.join(event.trace))
        try:
            outcome = await self._take(event, began + self._settings.ack_s)
        except Problem as problem:
            later = problem.kind.status >= 500
            kind = OutcomeKind.LATER if later else OutcomeKind.FAILED
            outcome = Outcome(kind, problem.detail, problem=problem)
        except RecordStoreError as error:
            _warn(error)
            detail = "The ledger of events cannot be asked."
            outcome = Outcome.later(RetryLaterError("events_unavailable", detail, 2))
        log.info("event", extra={"outcome": str(outcome.kind), "reason": outcome.reason})
        for listener in self.listeners:
            listener(outcome)
        return outcome

    async def take_over(self) -> None:
        """Go on, for ever, with accepted events whose workers have died."""
        await self._worker.take_over()

    async def close(self, patience_s: float) -> None:
        """Let what is being done end; what takes longer is given up, for others to take over."""
        await self._worker.close(patience_s)

    async def _take(self, event: CloudEvent, until: float) -> Outcome:
        found = await self._routed(event, until)
        if isinstance(found, str):
            return Outcome(OutcomeKind.IGNORED, found)
        keys = keys_of(found[0], event)
        if keys.upload not in self._running:
            self._check_room()
            text = json.dumps(event.structured())
            claim = await self._store.claim(keys, text, self._settings.lease_s)
            if claim.state is EventState.MINE:
                return await self._begun(ClaimedEvent(event, *found, keys, claim.token), until)
            if claim.state is EventState.DONE:
                return Outcome.duplicate(claim.result, trace_context.current.get())
            if claim.state is EventState.ACCEPTED:
                return Outcome(OutcomeKind.ACCEPTED, "it is accepted already")
            if keys.upload not in self._running:
                return _in_work(min(claim.left_s, _AGAIN_S))
        return await self._joined(self._running[keys.upload], until)

    async def _routed(self, event: CloudEvent, until: float) -> tuple[Notice, Rule] | str:
        """What `EventWorker.route` returns, in time for an answer.

        Raises:
            Problem: `storage_unavailable`, when the storage has not answered by then.
        """
        try:
            async with asyncio.timeout_at(until) as clock:
                return await self._worker.route(event)
        except TimeoutError:
            if not clock.expired():
                raise
            raise RetryLaterError(
                "storage_unavailable",
                "The store has not told in time what was uploaded.",
                _AGAIN_S,
                limit=self._settings.ack_s,
                setting="EMBER_EVENT_ACK_S",
            ) from None

    def _check_room(self) -> None:
        again_s = self._refusal()
        if again_s is None and len(self._running) < self._settings.limit:
            return
        raise RetryLaterError(
            "overloaded",
            "As many events as there is room for are at hand.",
            again_s or _AGAIN_S,
            limit=self._settings.limit,
            setting="EMBER_QUEUE_LIMIT",
        )

    async def _begun(self, claimed: ClaimedEvent, until: float) -> Outcome:
        """The outcome, when it comes in time; else that it will, if that can be promised."""
        task = self._worker.begin(claimed)
        await asyncio.wait({task}, timeout=_left_s(until))
        if task.done():
            return _of(task)
        accepted = False
        try:
            accepted = await self._store.accept(claimed.keys, claimed.token)
        except RecordStoreError as error:
            _warn(error)
        if task.done():
            return _of(task)
        return Outcome(OutcomeKind.ACCEPTED, "it takes long") if accepted else _in_work(_AGAIN_S)

    async def _joined(self, task: asyncio.Task[Outcome], until: float) -> Outcome:
        """The outcome of what another delivery of the event has begun here."""
        await asyncio.wait({task}, timeout=_left_s(until))
        if not task.done():
            return _in_work(_AGAIN_S)
        outcome = _of(task)
        if outcome.kind in {OutcomeKind.DONE, OutcomeKind.FAILED}:
            return Outcome(OutcomeKind.DUPLICATE, outcome.reason, outcome.result, outcome.problem)
        return outcome


def keys_of(notice: Notice, event: CloudEvent) -> EventKeys:
    """The keys of an event; without a version, nothing but its id tells uploads apart.

    What an event is about is part of its own key: else one that names the id of another, and
    another upload, would make that one a duplicate.
    """
    upload = f"{notice.store}:{notice.key}"
    if not notice.version:
        upload += f"{event.source}\n{event.id}"
    return EventKeys.of(upload, event.source, f"{event.id}\n{upload}")


def _left_s(until: float) -> float:
    return max(0.0, until - asyncio.get_running_loop().time())


def _of(task: asyncio.Task[Outcome]) -> Outcome:
    return _in_work(1.0) if task.cancelled() else task.result()


def _in_work(again_s: float) -> Outcome:
    problem = RetryLaterError("event_in_work", "The event is being worked on.", again_s)
    return Outcome.later(problem)


def _warn(error: RecordStoreError) -> None:
    log.warning("the ledger cannot be asked", extra={"reason": str(error)})
