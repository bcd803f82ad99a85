"""The right to compute: as many threads at once as there are CPUs, the most urgent first.

A permit belongs to a `with` block, so it comes back however the block ends. A thread that waits for
something else lends its permit to others meanwhile.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.problems import AbandonedError
from function.request_context import current
from function.runtime.scheduling.lane_shares import LaneShares
from function.runtime.scheduling.observer import Observer, Unobserved
from function.runtime.scheduling.queue import Queue, Ticket
from function.runtime.scheduling.watchdog import ThreadWatchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self
    from weakref import WeakMethod

    from function.problems import Problem


class _WaitingThread:
    """A thread that sleeps until it is given a permit, or an error."""

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.error: Problem | None = None

    def start(self) -> None:
        """Give it a permit."""
        self.woken.set()

    def drop(self, error: Problem) -> None:
        """Turn it away."""
        self.error = error
        self.woken.set()


@dataclass(slots=True, eq=False)
class ComputeTask:
    """Something to compute, for which no thread waits.

    Attributes:
        run: computes; it raises nothing, and returns what publishes the result.
        drop: ends it without having computed.
        spawn: lets a thread call `ComputePermits.work` with it.
    """

    run: Callable[[], Callable[[], object]]
    drop: Callable[[Problem], None]
    spawn: Callable[[ComputeTask], object]

    def start(self) -> None:
        """Give it a permit, and a thread."""
        self.spawn(self)


class ComputePermit:
    """The right of the calling thread to compute while the body of `with` runs.

    Args:
        permits: where it comes from.
        granted: whether the thread was given it with a task; else entering waits for it.

    Attributes:
        held: whether the thread has it now; not while it is lent.
        following: when it was not given back, the task that the thread is to do with it.
    """

    __slots__ = ("_granted", "_job", "_permits", "following", "held")

    def __init__(self, permits: ComputePermits, *, granted: bool = False) -> None:
        self._permits, self._granted = permits, granted
        self._job = permits.watch.job()
        self.held = False
        self.following: ComputeTask | None = None

    def __enter__(self) -> Self:
        if not self._granted:
            self._permits.acquire()
        self.held = True
        self._permits.of_thread.permit = self
        self._job.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._job.__exit__(None, None, None)
        self._permits.of_thread.permit = None
        if self.held:
            self.held = False
            self.following = self._permits.give_back(keep=self._granted)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let others have it while the body waits; an error of `acquire` leaves it with them."""
        with self._permits.watch.paused():
            self.held = False
            self._permits.give_back()
            try:
                yield
            finally:
                self._permits.acquire(paid=True)
                self.held = True


class _OfThread(threading.local):
    permit: ComputePermit | None = None


class ComputePermits:
    """Gives permits to threads.

    Args:
        total: how many threads may compute at once.
        clock: seconds, never going back.

    Attributes:
        shares: what each lane has coming, of steps and of batches.
        watch: knows how long each thread that has a permit has been computing.
        observer: learns how long threads have waited.
        on_free: called, without any lock, when nobody wants a permit that is free.
        of_thread: the permit of the calling thread.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.watch = ThreadWatchdog(clock)
        self.observer: Observer = Unobserved()
        self.on_free: list[WeakMethod[Callable[[], None]]] = []
        self.shares = LaneShares()
        self.of_thread = _OfThread()
        self._clock = clock
        self._free = total
        self._lock = threading.Lock()
        self._queue: Queue[_WaitingThread | ComputeTask] = Queue(self.shares)

    def held(self) -> ComputePermit:
        """A permit for the calling thread: entering it waits.

        Entering raises `AbandonedError` or `DeadlinePassedError` when nobody waits for the work any
        more; then the body does not begin.
        """
        return ComputePermit(self)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let others have the permit of this thread, if it has one, while the body waits.

        Raises:
            AbandonedError, DeadlinePassedError: after the body, nobody waits for the work any
                more; the permit stays with the others.
        """
        permit = self.of_thread.permit
        if permit and permit.held:
            with permit.lent():
                yield
        else:
            yield

    def give_way(self) -> None:
        """Let somebody of a more urgent lane go first, unless this one is behind its share.

        Raises:
            AbandonedError, DeadlinePassedError: nobody waits for the work of this thread any more.
        """
        first = self._queue.most_urgent()  # a glance without the lock; a late one does no harm
        lane = current.get().lane
        if first and first.before(lane) and not self.shares.owed(lane):
            with self.lent():
                pass

    def post(self, task: ComputeTask) -> None:
        """Have a task done for the running request, as soon as there is a permit for it."""
        with self._lock:
            self._queue.put(Ticket(task, current.get()), self._clock())
            if self._free and (following := self._next()):
                following.start()

    def work(self, task: ComputeTask) -> None:
        """Do a task with the permit that it was given, then what is next in the queue.

        So a thread goes from one task to the next and need not wake another.
        """
        following: ComputeTask | None = task
        while following:
            with ComputePermit(self, granted=True) as permit:
                publish = following.run()
            following = permit.following
            publish()  # when the permit is another's already

    # Glances without the lock, which may be late.

    @property
    def free(self) -> bool:
        """Whether a permit is free."""
        return self._free > 0

    @property
    def taken(self) -> int:
        """How many permits are not free."""
        return self.total - self._free

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for a permit."""
        return len(self._queue) > 0

    @property
    def held_here(self) -> bool:
        """Whether the calling thread has a permit."""
        permit = self.of_thread.permit
        return permit is not None and permit.held

    def close(self) -> None:
        """Turn away all who wait."""
        with self._lock:
            for ticket in self._queue.clear():
                ticket.item.drop(AbandonedError())

    # For a permit alone, which is one half of each of these.

    def acquire(self, *, paid: bool = False) -> None:
        """Wait for a permit; what was lent comes back without being paid for again."""
        waiter = _WaitingThread()
        ticket: Ticket[_WaitingThread | ComputeTask] = Ticket(waiter, current.get(), paid=paid)
        with self._lock:
            now = self._clock()
            if ticket.expired(now):
                raise ticket.error()
            if self._free and not len(self._queue):
                self._free -= 1
                if not paid:
                    self.shares.give(ticket.context.lane)
                return
            self._queue.put(ticket, now)
        waiter.woken.wait()
        if waiter.error:
            raise waiter.error

    def give_back(self, *, keep: bool = False) -> ComputeTask | None:
        """Give a permit to whoever is next.

        Args:
            keep: whether the thread keeps it when a task is next, to do that itself.

        Returns:
            The task that the thread is to do; None if the permit is not its own any more.
        """
        with self._lock:
            self._free += 1
            following = self._next()
            if keep and isinstance(following, ComputeTask):
                return following
            if following:
                following.start()
        if self._free:
            for listener in self.on_free:
                if call := listener():
                    call()
        return None

    def _next(self) -> _WaitingThread | ComputeTask | None:
        """Who has a permit next, which is then not free any more; needs the lock."""
        now = self._clock()
        for ticket in self._queue.purge(now):
            ticket.item.drop(ticket.error())
        parts = self._queue.take(1)
        if not parts:
            return None
        ticket = parts[0].ticket
        self._free -= 1
        self.observer.waited("thread", ticket.context.lane, now - ticket.since)
        return ticket.item
