"""The desk: takes events in, has each done once, and says what became of it."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function import tasks
from function.background import lease
from function.background.events import notice as notices
from function.background.events import outcome as outcomes
from function.background.events import wire
from function.background.events.dedup import (
    KEEP_FAILED_S,
    KEEP_S,
    DedupStoreError,
    EventKeys,
    EventState,
)
from function.background.events.event import STRUCTURED
from function.background.events.outcome import Outcome, OutcomeKind
from function.background.events.writer import SupersededError
from function.problems import Problem
from function.request_context import Lane, RequestContext, current
from function.tasks import Running
from function.telemetry import trace_context
from function.telemetry.spans import Span
from function.telemetry.spans import SpanKind as Side

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from function.background.events.dedup import DedupStore
    from function.background.events.event import CloudEvent
    from function.background.events.notice import Notice
    from function.background.events.rules import Rule
    from function.background.events.sink import EventSink
    from function.background.events.writer import OutputWriter

log = logging.getLogger("ember.events")

_AGAIN_S = 5.0
"""After how long something that is being done is asked about again."""


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """How the desk works.

    Attributes:
        ack_s: after how long an event is answered though it is not done.
        lease_s: after how long an event is anybody's whose worker is silent.
        limit: how many events may be at hand.
        places: how many are worked on at once; the others hold no photos.
    """

    ack_s: float
    lease_s: float
    limit: int
    places: int


class EventProcessor:
    """Takes events in.

    Args:
        making: makes outputs.
        ledger: remembers events.
        sink: where result events go; None where they are the answer.
        gate: says for how many seconds nothing more is to be taken in; None for not at all.
        terms: how it works.

    Attributes:
        listeners: are told what became of each event that was taken in.
    """

    def __init__(
        self,
        making: OutputWriter,
        ledger: DedupStore,
        sink: EventSink | None,
        gate: Callable[[], float | None],
        terms: ProcessorSettings,
    ) -> None:
        self._making, self._ledger, self._sink = making, ledger, sink
        self._gate, self._terms = gate, terms
        self._places = asyncio.Semaphore(terms.places)
        self._running = Running[Outcome]()  # by upload
        self.listeners: list[Callable[[Outcome], None]] = []

    @property
    def answers_results(self) -> bool:
        """Whether result events are the answer."""
        return self._sink is None

    async def take(self, event: CloudEvent, began: float) -> Outcome:
        """Take an event in.

        Args:
            event: the event.
            began: when its request came, by the clock of the loop; the answer comes within `ack_s`
                from then on, and the short time that questions to the ledger may take.
        """
        trace_context.current.set(trace_context.join(event.trace))
        try:
            outcome = await self._take(event, began + self._terms.ack_s)
        except Problem as problem:
            later = problem.kind.status >= 500
            kind = OutcomeKind.LATER if later else OutcomeKind.FAILED
            outcome = Outcome(kind, problem.detail, problem=problem)
        except DedupStoreError as error:
            log.warning("the ledger cannot be asked", extra={"reason": str(error)})
            outcome = _later("events_unavailable", "The ledger of events cannot be asked.", 2)
        log.info("event", extra={"outcome": str(outcome.kind), "reason": outcome.reason})
        for listener in self.listeners:
            listener(outcome)
        return outcome

    async def take_over(self) -> None:
        """Go on, for ever, with accepted events whose workers have died."""
        while True:
            await asyncio.sleep(min(self._terms.lease_s / lease.PARTS, _AGAIN_S))
            try:
                while len(self._running) < self._terms.places and await self._take_left():
                    pass
            except DedupStoreError as error:
                log.warning("the ledger cannot be asked", extra={"reason": str(error)})
            except Exception:
                log.exception("an event that was left cannot be taken over")

    async def close(self, patience_s: float) -> None:
        """Let what is being done end; what takes longer is given up, for others to take over."""
        await self._running.close(patience_s)
        await self._ledger.close()
        if self._sink:
            await self._sink.close()

    async def _take(self, event: CloudEvent, until: float) -> Outcome:
        found = await self._routed_by(event, until)
        if isinstance(found, str):
            return Outcome(OutcomeKind.IGNORED, found)
        notice, rule = found
        keys = keys_of(notice, event)
        if keys.upload not in self._running:
            self._check_room()
            claim = await self._ledger.claim(keys, _text(event), self._terms.lease_s)
            if claim.state is EventState.MINE:
                task = self._begin(event, notice, rule, keys, claim.token)
                return await self._awaited(task, keys, claim.token, until)
            if claim.state is EventState.DONE:
                return Outcome.again(claim.result, trace_context.current.get())
            if claim.state is EventState.ACCEPTED:
                return Outcome(OutcomeKind.ACCEPTED, "it is accepted already")
            if keys.upload not in self._running:
                return _in_work(min(claim.left_s, _AGAIN_S))
        return await self._joined(self._running[keys.upload], until)

    async def _routed_by(self, event: CloudEvent, until: float) -> tuple[Notice, Rule] | str:
        """See `_routed`, in time for an answer.

        Raises:
            Problem: `storage_unavailable`, when the store has not told by then.
        """
        try:
            async with asyncio.timeout_at(until) as clock:
                return await self._routed(event)
        except TimeoutError:
            if not clock.expired():
                raise
            raise Problem(
                "storage_unavailable",
                "The store has not told in time what was uploaded.",
                headers={"Retry-After": str(round(_AGAIN_S))},
                limit=self._terms.ack_s,
                setting="EMBER_EVENT_ACK_S",
            ) from None

    async def _routed(self, event: CloudEvent) -> tuple[Notice, Rule] | str:
        """The upload that an event tells of and the rule that counts, or why nothing is to be done.

        Raises:
            Problem: the event says too little, or the store cannot be asked about the upload.
        """
        notice = notices.read(event)
        if isinstance(notice, str):
            return notice
        return self._making.rules.own(notice) or await self._making.routed(notice)

    def _check_room(self) -> None:
        again_s = self._gate()
        if again_s is None and len(self._running) < self._terms.limit:
            return
        raise Problem(
            "overloaded",
            "As many events as there is room for are at hand.",
            headers={"Retry-After": str(max(1, round(again_s or _AGAIN_S)))},
            limit=self._terms.limit,
            setting="EMBER_QUEUE_LIMIT",
        )

    def _begin(
        self, event: CloudEvent, notice: Notice, rule: Rule, keys: EventKeys, token: str
    ) -> asyncio.Task[Outcome]:
        work = self._work(event, notice, rule, keys, token)
        return self._running.begin(keys.upload, work)

    async def _awaited(
        self, task: asyncio.Task[Outcome], keys: EventKeys, token: str, until: float
    ) -> Outcome:
        """The outcome, when it comes in time; else that it will, if that can be promised."""
        await asyncio.wait({task}, timeout=_left_s(until))
        if task.done():
            return _of(task)
        accepted = False
        try:
            accepted = await self._ledger.accept(keys, token)
        except DedupStoreError as error:
            log.warning("the ledger cannot be asked", extra={"reason": str(error)})
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

    async def _take_left(self) -> bool:
        """Go on with one event that was left; whether there was one."""
        left = await self._ledger.left(self._terms.lease_s)
        if left is None:
            return False
        event = wire.parse([("content-type", STRUCTURED)], left.event.encode()).events[0]
        found = await self._routed(event)
        if isinstance(found, str):
            outcome = Outcome(OutcomeKind.IGNORED, found)
            await self._ledger.finish(left.keys, left.token, outcome.kept())
        elif left.keys.upload not in self._running:
            log.info("taking over an event")
            self._begin(event, *found, left.keys, left.token)
        return True

    async def _work(
        self, event: CloudEvent, notice: Notice, rule: Rule, keys: EventKeys, token: str
    ) -> Outcome:
        """Have an event done, as a part of its trace."""
        with Span("event", Side.CONSUMER, trace_context.join(event.trace)) as span:
            outcome = await self._settled(notice, rule, keys, token)
            span.facts = {
                "cloudevents.event_type": event.type,
                "ember.rule": rule.name,
                "ember.outcome": str(outcome.kind),
            }
            if outcome.problem:
                span.facts["error.type"] = outcome.problem.code
            return outcome

    async def _settled(self, notice: Notice, rule: Rule, keys: EventKeys, token: str) -> Outcome:
        """Have an event done; what becomes of it is in the ledger, unless it may be tried again."""
        current.set(RequestContext(Lane.BULK))
        keeping = asyncio.create_task(self._keep(keys, token))
        try:
            outcome = await self._outcome(notice, rule)
            if outcome.result and self._sink:
                await self._sink.send(outcome.result)
        except Problem as problem:
            outcome = Outcome(OutcomeKind.LATER, problem.detail, problem=problem)
        except asyncio.CancelledError:
            await asyncio.shield(self._told(self._ledger.release(keys, token)))
            raise
        except Exception:
            log.exception("an event failed")
            outcome = _later("internal", "Something went wrong inside; it has been logged.", 5)
        finally:
            await tasks.end(keeping)
        if outcome.kind is OutcomeKind.LATER:
            await self._told(self._ledger.release(keys, token))
        else:
            keep_s = KEEP_FAILED_S if outcome.kind is OutcomeKind.FAILED else KEEP_S
            await self._told(self._ledger.finish(keys, token, outcome.kept(), keep_s))
        return outcome

    async def _outcome(self, notice: Notice, rule: Rule) -> Outcome:
        """What comes of an upload.

        Raises:
            Problem: one that may be gone at the next attempt.
        """
        try:
            async with self._places:
                output = await self._making.make(notice, rule)
        except SupersededError:
            return Outcome(OutcomeKind.SUPERSEDED, "a newer upload has taken its place")
        except Problem as problem:
            if problem.kind.status >= 500:
                raise
            result = outcomes.failed(notice, rule, trace_context.current.get(), problem)
            return Outcome(OutcomeKind.FAILED, problem.code, result, problem)
        result = outcomes.succeeded(notice, rule, trace_context.current.get(), output)
        return Outcome(OutcomeKind.DONE, "", result)

    async def _keep(self, keys: EventKeys, token: str) -> None:
        """Renew a claim until cancelled. One that got lost harms nobody: the store decides."""
        lease_s = self._terms.lease_s
        await lease.keep(
            lambda: self._ledger.renew(keys, token, lease_s), lease_s / lease.PARTS, DedupStoreError
        )
        log.warning("the claim of an event got lost")

    async def _told(self, telling: Coroutine[None, None, None]) -> None:
        """Tell the ledger. Where that fails, a duplicate finds the output in the store."""
        try:
            await telling
        except DedupStoreError as error:
            log.warning("the ledger cannot be told", extra={"reason": str(error)})


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


def _text(event: CloudEvent) -> str:
    """An event as text for the ledger."""
    return json.dumps(event.structured())


def _of(task: asyncio.Task[Outcome]) -> Outcome:
    return _in_work(1.0) if task.cancelled() else task.result()


def _in_work(again_s: float) -> Outcome:
    return _later("event_in_work", "The event is being worked on.", again_s)


def _later(code: str, detail: str, again_s: float) -> Outcome:
    headers = {"Retry-After": str(max(1, round(again_s)))}
    return Outcome(OutcomeKind.LATER, detail, problem=Problem(code, detail, headers=headers))
