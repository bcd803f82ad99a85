"""From a claimed event to its outcome: under a lease, and as a part of the event's trace."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from function.background import lease
from function.background.events import notice as notices
from function.background.events import outcome as outcomes
from function.background.events import wire
from function.background.events.dedup import KEEP_FAILED_S, KEEP_S
from function.background.events.event import STRUCTURED
from function.background.events.outcome import Outcome, OutcomeKind
from function.background.events.writer import SupersededError
from function.background.records import RecordStoreError
from function.problems import Problem, RetryLaterError
from function.request_context import Entry, Lane, RequestContext, Sender, current
from function.tasks import Running
from function.telemetry import trace_context
from function.telemetry.spans import Span, SpanKind

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from function.background.events.dedup import DedupStore, EventKeys
    from function.background.events.event import CloudEvent
    from function.background.events.notice import Notice
    from function.background.events.rules import Rule
    from function.background.events.sink import EventSink
    from function.background.events.writer import OutputWriter

log = logging.getLogger("ember.events")

_LOOK_S = 5.0


@dataclass(frozen=True, slots=True)
class ClaimedEvent:
    """An event that is this replica's to work on; the token proves it."""

    event: CloudEvent
    notice: Notice
    rule: Rule
    keys: EventKeys
    token: str


class EventWorker:
    """Works on events.

    Args:
        writer: makes outputs.
        store: remembers events.
        sink: where result events go; None where they are the answer.
        lease_s: after how long somebody else may go on with an event when nothing is heard of it.
        slots: how many are worked on at once; the others hold no photos.

    Attributes:
        running: what is at hand, by the upload of its keys.
    """

    def __init__(
        self,
        writer: OutputWriter,
        store: DedupStore,
        sink: EventSink | None,
        lease_s: float,
        slots: int,
    ) -> None:
        self._writer, self._store, self._sink = writer, store, sink
        self._lease_s, self._slots = lease_s, slots
        self._free = asyncio.Semaphore(slots)
        self.running = Running[Outcome]()

    def begin(self, claimed: ClaimedEvent) -> asyncio.Task[Outcome]:
        """Begin to work on an event."""
        return self.running.begin(claimed.keys.upload, self._traced(claimed))

    async def route(self, event: CloudEvent) -> tuple[Notice, Rule] | str:
        """The upload that an event is about and the rule that counts, or why there is none.

        Raises:
            Problem: the event says too little, or the storage cannot be asked about the upload.
        """
        notice = notices.read(event)
        if isinstance(notice, str):
            return notice
        return self._writer.rules.own(notice) or await self._writer.route(notice)

    async def take_over(self) -> None:
        """Go on, for ever, with accepted events whose workers have died."""
        await lease.look_for_work(
            partial(lease.fill, self.running, self._slots, self._take),
            partial(asyncio.sleep, min(self._lease_s / lease.PARTS, _LOOK_S)),
            log,
            unavailable="the ledger cannot be asked",
            failed="an event that was left cannot be taken over",
        )

    async def close(self, patience_s: float) -> None:
        """Let what is being done end; what takes longer is given up, for others to take over."""
        await self.running.close(patience_s)
        await self._store.close()
        if self._sink:
            await self._sink.close()

    async def _take(self) -> bool:
        """Go on with one event that was left; whether there was one."""
        if (taken := await self._store.take(self._lease_s)) is None:
            return False
        event = wire.parse([("content-type", STRUCTURED)], taken.event.encode()).events[0]
        found = await self.route(event)
        if isinstance(found, str):
            outcome = Outcome(OutcomeKind.IGNORED, found)
            await self._store.finish(taken.keys, outcome.text())
        elif taken.keys.upload not in self.running:
            log.info("taking over an event")
            self.begin(ClaimedEvent(event, *found, taken.keys, taken.token))
        return True

    async def _traced(self, claimed: ClaimedEvent) -> Outcome:
        event = claimed.event
        with Span("event", SpanKind.CONSUMER, trace_context.join(event.trace)) as span:
            outcome = await self._settled(claimed)
            span.facts = {
                "cloudevents.event_type": event.type,
                "ember.rule": claimed.rule.name,
                "ember.outcome": str(outcome.kind),
            }
            if outcome.problem:
                span.facts["error.type"] = outcome.problem.code
            return outcome

    async def _settled(self, claimed: ClaimedEvent) -> Outcome:
        """The outcome, which the store has by then, unless the event may be tried again."""
        sender = Sender(Entry.EVENT, claimed.event.id)
        current.set(RequestContext(Lane.BULK, sender=sender))
        release = partial(self._store.release, claimed.keys, claimed.token)
        try:
            every_s = self._lease_s / lease.PARTS
            async with lease.renewing(partial(self._renew, claimed), every_s):
                outcome = await self._outcome(claimed)
                if outcome.result and self._sink:
                    await self._sink.send(outcome.result)
        except Problem as problem:
            outcome = Outcome.later(problem)
        except asyncio.CancelledError:
            await asyncio.shield(_stored(release()))
            raise
        except Exception:
            log.exception("an event failed")
            detail = "Something went wrong inside; it has been logged."
            outcome = Outcome.later(RetryLaterError("internal", detail, 5))
        if outcome.kind is OutcomeKind.LATER:
            await _stored(release())
        else:
            keep_s = KEEP_FAILED_S if outcome.kind is OutcomeKind.FAILED else KEEP_S
            await _stored(self._store.finish(claimed.keys, outcome.text(), keep_s))
        return outcome

    async def _outcome(self, claimed: ClaimedEvent) -> Outcome:
        """What comes of an upload.

        Raises:
            Problem: one that may be gone at the next attempt.
        """
        notice, rule = claimed.notice, claimed.rule
        try:
            async with self._free:
                output = await self._writer.make(notice, rule)
        except SupersededError:
            return Outcome(OutcomeKind.SUPERSEDED, "a newer upload has taken its place")
        except Problem as problem:
            if problem.kind.status >= 500:
                raise
            result = outcomes.failed(notice, rule, trace_context.current.get(), problem)
            return Outcome(OutcomeKind.FAILED, problem.code, result, problem)
        result = outcomes.succeeded(notice, rule, trace_context.current.get(), output)
        return Outcome(OutcomeKind.DONE, "", result)

    async def _renew(self, claimed: ClaimedEvent) -> bool:
        """Whether the claim is still ours. One that is lost harms nobody: the storage decides."""
        held = await self._store.renew(claimed.keys, claimed.token, self._lease_s)
        if not held:
            log.warning("the claim of an event got lost")
        return held


async def _stored(change: Coroutine[None, None, None]) -> None:
    """Change the store. Where that fails, a duplicate finds the output in the storage."""
    try:
        await change
    except RecordStoreError as error:
        log.warning("the ledger cannot be told", extra={"reason": str(error)})
