"""The right to compute: as many threads at once as there are CPUs, the most urgent first.

A thread that waits for something else lends its permit to others meanwhile. A permit belongs to a
`with` block, so it comes back however the block ends.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.problems import Problem
from function.request_context import current
from function.runtime.scheduling.lane_shares import LaneShares
from function.runtime.scheduling.observer import Observer, Unobserved
from function.runtime.scheduling.queue import Queue, Ticket
from function.runtime.scheduling.watchdog import ThreadWatchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from weakref import WeakMethod


class Abandoned(Problem):
    """What ends work that nobody waits for, or that would come too late."""


def abandoned() -> Abandoned:
    """The problem of such work."""
    return Abandoned(
        "overloaded",
        "There was no time left when the work could have begun.",
        headers={"Retry-After": "1"},
    )


class _Waiter:
    """A thread that waits until the event, and whether it then has a permit."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.granted = False

    def start(self) -> None:
        """Give it a permit."""
        self.granted = True
        self.event.set()

    def drop(self) -> None:
        """Turn it away."""
        self.event.set()


@dataclass(slots=True, eq=False)
class ComputeTask:
    """Something to compute, for which no thread waits.

    Attributes:
        run: computes; it raises nothing, and gives what tells of the end.
        drop: ends it, as nobody waits for it any more.
        spawn: lets a thread call `ComputePermits.work` with it.
    """

    run: Callable[[], Callable[[], object]]
    drop: Callable[[], None]
    spawn: Callable[[ComputeTask], object]

    def start(self) -> None:
        """Give it a permit, and a thread."""
        self.spawn(self)


class ComputePermits:
    """Gives permits to threads.

    Args:
        permits: how many threads may compute at once.
        clock: seconds, never going back.

    Attributes:
        shares: what each lane has coming, of steps and of batches.
        watch: knows how long each thread that has a permit has been computing.
        observer: is told how long threads have waited.
        on_spare: called, without any lock, when nobody wants a permit that is free.
    """

    def __init__(self, permits: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.permits = permits
        self.watch = ThreadWatchdog(clock)
        self.observer: Observer = Unobserved()
        self.on_spare: list[WeakMethod[Callable[[], None]]] = []
        self._clock = clock
        self._free = permits
        self._lock = threading.Lock()
        self.shares = LaneShares()
        self._queue: Queue[_Waiter | ComputeTask] = Queue(self.shares)
        self._own = threading.local()

    def post(self, job: ComputeTask) -> None:
        """Have a job done, for whom the caller works, as soon as there is a permit for it."""
        with self._lock:
            self._queue.put(Ticket(job, current.get()), self._clock())
            if self._free:
                self._pass_on()

    def work(self, job: ComputeTask) -> None:
        """Do a job with the permit that it was given, then what is next in the queue.

        So a thread goes from one job to the next and need not wake another.
        """
        following: ComputeTask | None = job
        while following:
            self._own.permit = True
            with self.watch.job():
                tell = following.run()
            following = self._following() if self.mine else None
            tell()  # when the permit is another's already

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold a permit while the body computes.

        Raises:
            Problem: nobody waits for the work any more; the body has not begun.
        """
        self._take()
        try:
            with self.watch.job():
                yield
        finally:
            if self.mine:
                self._give()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let others have the permit of this thread, if it has one, while the body waits.

        Raises:
            Problem: after the body, nobody waits for the work any more; the permit stays away.
        """
        if not self.mine:
            yield
            return
        with self.watch.paused():
            self._give()
            try:
                yield
            finally:
                self._take(paid=True)

    def give_way(self) -> None:
        """Let somebody of a more urgent lane go first, unless this one is behind its share.

        Raises:
            Problem: nobody waits for the work of this thread any more.
        """
        first = self._queue.most_urgent()  # a glance without the lock; a late one does no harm
        mine = current.get().lane
        if first and first.before(mine) and not self.shares.owed(mine):
            with self.lent():
                pass

    # Glances without the lock, which may be late.

    @property
    def spare(self) -> bool:
        """Whether a permit is free."""
        return self._free > 0

    @property
    def taken(self) -> int:
        """How many permits are not free."""
        return self.permits - self._free

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for a permit."""
        return len(self._queue) > 0

    @property
    def mine(self) -> bool:
        """Whether the calling thread has a permit."""
        return getattr(self._own, "permit", False)

    def close(self) -> None:
        """Turn away all who wait."""
        with self._lock:
            for ticket in self._queue.clear():
                ticket.item.drop()

    def _take(self, *, paid: bool = False) -> None:
        """Wait for a permit; what was lent comes back without being paid for again."""
        mine, waiter = current.get(), _Waiter()
        with self._lock:
            now = self._clock()
            if mine.abandoned or now >= mine.deadline:
                raise abandoned()
            if self._free and not len(self._queue):
                self._free -= 1
                self._own.permit = True
                if not paid:
                    self.shares.give(mine.lane)
                return
            self._queue.put(Ticket(waiter, mine, paid=paid), now)
        waiter.event.wait()
        if not waiter.granted:
            raise abandoned()
        self._own.permit = True

    def _give(self) -> None:
        """Give the permit of this thread to whoever is next."""
        self._own.permit = False
        with self._lock:
            self._free += 1
            self._pass_on()
        self._tell_spare()

    def _following(self) -> ComputeTask | None:
        """The job that this thread does next with its permit; None if others are to have that."""
        self._own.permit = False
        with self._lock:
            self._free += 1
            following = self._next()
            if isinstance(following, ComputeTask):
                return following
            if following:
                following.start()
        self._tell_spare()
        return None

    def _tell_spare(self) -> None:
        if self._free:
            for listener in self.on_spare:
                if call := listener():
                    call()

    def _pass_on(self) -> None:
        """Give a free permit to whoever is next; needs the lock."""
        if following := self._next():
            following.start()

    def _next(self) -> _Waiter | ComputeTask | None:
        """Who has a permit next, which is then not free any more; needs the lock."""
        now = self._clock()
        for ticket in self._queue.purge(now):
            ticket.item.drop()
        parts = self._queue.take(1)
        if not parts:
            return None
        ticket = parts[0].ticket
        self._free -= 1
        self.observer.waited("thread", ticket.context.lane, now - ticket.since)
        return ticket.item
