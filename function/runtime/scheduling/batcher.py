"""One stage's engine, shared: what many threads ask for at once is run together.

It has no thread of its own. A caller that finds a free run executes at once what waits, in its own
thread, so that a lone request pays for no hop. While all runs are busy, callers wait, and whoever
ends calls the first of them: the batch has filled meanwhile. On a CPU a batch needs a permit as any
other step does. See docs/batching.md.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from weakref import WeakMethod

from function.problems import RetryLaterError
from function.request_context import Lane, current
from function.runtime import out_of_memory
from function.runtime.engine import PROVIDERS
from function.runtime.sanity import WrongResultError, finite
from function.runtime.scheduling import headroom
from function.runtime.scheduling.batch import BatchMember, batch_inputs, count, split
from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.cost import Cost
from function.runtime.scheduling.headroom import Comeback
from function.runtime.scheduling.queue import Queue, Ticket, TicketRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.runtime.engine import Engine
    from function.runtime.scheduling.batch import Part, Rows
    from function.runtime.scheduling.permits import ComputePermits


log = logging.getLogger("ember.batcher")

_STRETCH = 2.0  # how much longer interactive items may take because others share their batch


class Batcher:
    """An `Engine` that many threads share.

    Args:
        stage: its name, for messages and counters.
        engine: runs the batches.
        permits: to compute; their observer learns what happens here as well.
        runs: how many batches run at once; None for as many as there are callers, who then never
            share one.
        buckets: the sizes of a batch.
        window: for how many seconds at most a batch that could start waits for more rows while
            another is running, unless it has an interactive one; 0 if none ever waits.
        clock: seconds, never going back.

    Attributes:
        cost: what a batch costs.
    """

    def __init__(
        self,
        stage: str,
        engine: Engine,
        permits: ComputePermits,
        *,
        runs: int | None = None,
        buckets: Buckets | None = None,
        window: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cost = Cost()
        self._stage, self._engine, self._permits = stage, engine, permits
        self._runs = runs
        self._buckets = buckets or Buckets()
        self._limit = self._buckets.largest
        self._memory, self._comeback = headroom.reader(engine.provider), Comeback()
        self._window, self._clock = window, clock
        self._on_cpu = engine.provider == PROVIDERS["cpu"]
        if self._on_cpu and runs is not None and window:
            permits.on_free.append(WeakMethod(self._wake))  # a variant's batcher may go
        self._lock = threading.Lock()
        self._queue: Queue[BatchMember] = Queue(permits.shares)
        self._busy = 0
        self._called: BatchMember | None = None  # who is to run the next batch, and has not begun

    @property
    def provider(self) -> str:
        """What executes the model."""
        return self._engine.provider

    @property
    def items(self) -> None:
        """Any number: what is too much for the engine is cut up."""
        return

    @property
    def cap(self) -> int:
        """The most rows of a batch at present."""
        return self._buckets.up_to(self._limit).largest

    def run(self, *inputs: Rows) -> list[Rows]:
        """Run the model once for these rows; those of other callers may run with them.

        Raises:
            Problem: nobody waits for it any more, or there is too little memory for it.
            WrongResultError: what comes out for these rows is not finite.
        """
        self._permits.give_way()
        member = BatchMember(inputs, self._lock)
        ticket = Ticket(
            member, current.get(), len(inputs[0]), tuple(each.shape[1:] for each in inputs)
        )
        if self._runs is None:
            self._alone(ticket)
        elif self._on_cpu:
            self._together(ticket, self._permits.lent)
        else:  # a device computes, so that the permit is for others even while a batch runs
            with self._permits.lent():
                self._together(ticket, nullcontext)
        return member.outputs()

    def _alone(self, ticket: Ticket[BatchMember]) -> None:
        """Run a member by itself, right now."""
        start = 0
        self._permits.shares.give(ticket.context.lane, ticket.rows)
        while not ticket.item.settled:
            if ticket.expired(self._clock()):
                with self._lock:
                    self._drop([ticket])
                return
            stop = min(ticket.rows, start + self.cap)
            self._attempt([TicketRows(ticket, start, stop)])
            start = stop

    def _together(
        self, ticket: Ticket[BatchMember], waiting: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Run a member with others, or have others run it.

        Args:
            ticket: of the member.
            waiting: its body waits, and needs no permit; afterwards the thread may compute.
        """
        member = ticket.item
        with self._lock:
            self._queue.put(ticket, self._clock())
            parts = self._choose() if self._until_due(coming=True) == 0.0 else []
        try:
            self._lead(parts)
            while not member.settled:
                with waiting():
                    self._wait(member)
                with self._lock:
                    parts = self._answer(ticket)
                self._lead(parts)
        finally:
            with self._lock:
                self._queue.discard(ticket)
                self._answer(ticket)  # it may have been called while it ran a part of itself

    def _wait(self, member: BatchMember) -> None:
        """Wait until a member is called or settled."""
        with self._lock:
            while not member.settled and self._called is not member:
                self._call()
                if not member.settled and self._called is not member:
                    member.wake.wait(self._until_due())

    def _wake(self) -> None:
        """See whether a batch is due, as a CPU is free."""
        if len(self._queue):  # a glance without the lock; who comes later looks for itself
            with self._lock:
                self._call()

    def _lead(self, parts: list[Part]) -> None:
        """Execute a batch that was chosen, and call who is next."""
        if parts:
            try:
                self._attempt(parts)
            finally:
                with self._lock:
                    self._busy -= 1
                    self._call()

    # What follows, up to the next such line, needs the lock.

    def _due(self, *, coming: bool) -> float:
        """When the next batch should start; an idle device waits for nothing.

        On a CPU others can come while threads compute something else than these batches. While all
        permits are taken and wanted, a batch that waits holds nobody up, and saves time for all.

        An example on 3 CPUs, with batches of up to 4, a base of 8 ms and a window of 20 ms: one
        thread runs a batch, another decodes a photo, and the third comes with an item. Nobody wants
        its permit, so the next batch is due after 8 ms, which is what a batch of its own would cost
        more. If others wait for permits, it is due after 3 · 8 = 24 ms, as a full batch saves that.
        If no other thread computes, it is due at once, as nobody else can come.

        Args:
            coming: whether the caller comes, and would lend its permit to wait.
        """
        size, window, base = self.cap, self._window, self.cost.base
        if self._on_cpu:
            lends = coming and self._permits.held_here
            others = self._permits.taken - self._busy - lends
            spare = self._permits.free or (lends and not self._permits.wanted)
            if not window or (spare and (not self._busy or others <= 0)):
                return 0.0
            if not spare and self.cost.sloped:
                base = window = base * (size - 1)  # what a full batch saves
        elif not self._busy:
            return 0.0
        if self.cost.sloped:  # two batches in one save the base of one: waiting is worth no more
            window = min(window, base)
        return self._queue.due(room=size, window=window, cost=self.cost.seconds(size))

    def _until_due(self, *, coming: bool = False) -> float | None:
        """For how long a thread may sleep; None if it will be woken.

        Who is coming is at work already, and so need not care whether somebody else was called.
        """
        called = self._called is not None and not coming
        if called or self._busy == self._runs or not len(self._queue):
            return None
        return max(0.0, self._due(coming=coming) - self._clock())

    def _call(self) -> None:
        """Have the first who waits run the next batch, if it is due, or else see when it is.

        One at a time, so that nobody is called for rows that another will take.
        """
        self._drop(self._queue.purge(self._clock()))
        head = self._queue.head()
        until = self._until_due()
        if head and until is not None:
            if until == 0.0:
                self._called = head.item
            head.item.wake.notify()

    def _answer(self, ticket: Ticket[BatchMember]) -> list[Part]:
        """The batch for a member that may have been called, as far as it is still needed."""
        if self._called is not ticket.item:
            return []
        self._called = None
        if ticket.left and self._busy != self._runs:
            return self._choose()
        self._call()
        return []

    def _choose(self) -> list[Part]:
        """The batch that the calling thread is to run; there are none where all have gone."""
        now = self._clock()
        self._drop(self._queue.purge(now))
        head = self._queue.head()
        if head is None:
            return []
        self._busy += 1
        self._come_back(now)
        buckets = self._buckets.up_to(self._limit)
        slack = min(head.context.deadline - now, self._patience(buckets))
        parts = self._queue.take(buckets.rows(self._queue.room_for(head), self.cost, slack))
        for ticket, start, _ in parts:
            if not start:
                self._permits.observer.waited("batch", ticket.context.lane, now - ticket.since)
        self._call()
        return parts

    def _patience(self, buckets: Buckets) -> float:
        """How long a batch may take for the sake of the interactive items that wait."""
        urgent = min(self._queue.waiting(Lane.INTERACTIVE), buckets.largest)
        if not urgent or not self.cost.sloped:
            return math.inf
        return _STRETCH * self.cost.seconds(buckets.padded(urgent))

    def _come_back(self, now: float) -> None:
        """Allow one size more, if memory has become clearly more since it was too little."""
        if self._comeback.asks(now) and self._comeback.allows(now, self._memory()):
            self._limit = self._buckets.above(self.cap)

    def _drop(self, expired: list[Ticket[BatchMember]]) -> None:
        """End members that nobody waits for, or that are too late."""
        for ticket in expired:
            self._permits.observer.dropped(self._stage)
            ticket.item.fail(ticket.error())

    # What follows takes the lock where it needs it.

    def _attempt(self, parts: list[Part], *, again: bool = True) -> None:
        """Run some rows, and see that each member has its outputs or an error of its own.

        Args:
            parts: up to the largest size.
            again: whether a batch for which memory is short is tried once more in two halves.
        """
        try:
            outputs = self._timed(parts)
        except Exception as error:
            if out_of_memory.is_out_of_memory(error):
                self._shrink(parts, again=again)
            elif len(parts) > 1:
                self._permits.observer.bisected(self._stage)
                self._attempt(parts[: len(parts) // 2], again=again)
                self._attempt(parts[len(parts) // 2 :], again=again)
            else:
                self._fail(parts, error)
        except BaseException as error:
            self._fail(parts, error)
            raise
        else:
            self._deliver(parts, outputs)

    def _timed(self, parts: list[Part]) -> list[Rows]:
        """Run some rows as one batch, and learn what that costs."""
        rows = count(parts)
        size = self._buckets.padded(rows)
        batch = batch_inputs(parts, size)
        with self._permits.watch.job():
            began = self._clock()
            outputs = self._engine.run(*batch)
            took = self._clock() - began
        if any(len(output) != size for output in outputs):
            raise RuntimeError(f"{self._stage} gives not one output for each of {size} items")
        with self._lock:
            self.cost.observe(size, took)
        self._permits.observer.batched(self._stage, rows)
        return outputs

    def _deliver(self, parts: list[Part], outputs: list[Rows]) -> None:
        """Give each member what is its own."""
        at = 0
        for ticket, start, stop in parts:
            own = [output[at : at + stop - start] for output in outputs]
            at += stop - start
            try:
                finite(self._stage, own)
            except WrongResultError as error:
                self._fail([TicketRows(ticket, start, stop)], error)
                continue
            with self._lock:
                ticket.item.deliver(start, own)

    def _fail(self, parts: list[Part], error: BaseException) -> None:
        """End these members; what is left of them in the queue is not needed any more."""
        with self._lock:
            for ticket, _, _ in parts:
                self._queue.discard(ticket)
                ticket.item.fail(error)

    def _shrink(self, parts: list[Part], *, again: bool) -> None:
        """Remember that memory does not suffice for so many rows, and try fewer, once."""
        rows = count(parts)
        half = max(1, self._buckets.padded(rows) // 2)
        with self._lock:
            self._limit = min(self._limit, half)
            self._comeback.fell(self._clock(), self._memory())
        log.warning("short of memory", extra={"stage": self._stage, "rows": rows, "cap": self.cap})
        if again:
            for some in split(parts, min(rows, self.cap)):
                if rest := [part for part in some if not part.ticket.item.error]:
                    self._attempt(rest, again=False)
        else:
            no_memory = RetryLaterError(
                "overloaded", "There is too little memory for this at the moment.", 1.0
            )
            self._fail(parts, no_memory)
