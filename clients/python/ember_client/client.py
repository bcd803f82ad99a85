"""The client for threads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self, TypeVar

import httpx

from ember_client import transport
from ember_client.calls import Calls
from ember_client.exchange import Patience, Pause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Unpack

    from ember_client.exchange import Answer, Lost, Plan, Send
    from ember_client.options import CallOptions, JobOptions, SwapOptions
    from ember_client.photos import Photo, Source
    from ember_client.results import Faces, File, Job, JobPage, Swap, Verification

T = TypeVar("T")


class Client:
    """Calls an Ember server. Threads may share it.

    Every call waits while a replica wakes, and comes again when `Retry-After` says so. It raises
    a `Problem` where the server refuses, `Unreachable` where no answer comes, and
    `UnexpectedAnswer` where something else answers.

    Args:
        url: of the server, such as "https://ember.example".
        token: a key or a token that says who calls, where the server wants one.
        patience_s: how many seconds each call may take in all, with every try and pause.
        http: for proxies, certificates and the like; who made it closes it.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        patience_s: float = 120.0,
        http: httpx.Client | None = None,
    ) -> None:
        self._url, self._own = url, http is None
        self._http = http or httpx.Client()
        self._calls = Calls(token, Patience(patience_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        if self._own:
            self._http.close()

    def wake(self) -> None:
        """Wait until a replica takes traffic, so that the next call finds it awake."""
        self._run(self._calls.wake())

    def swap(
        self,
        source: Source,
        target: Photo,
        **options: Unpack[SwapOptions],
    ) -> Swap:
        """Put the person of `source` into `target`.

        Args:
            source: 1 to 8 photos of the person; or of several people by name, for a person of
                each face: `{"ann": "ann.jpg", "bob": "bob.jpg"}` with `faces={0: "ann", 2: "bob"}`.
            target: the photo to change, or a short animation; a video needs a job.
            options: as `SwapOptions` has them.
        """
        return self._run(self._calls.swap(source, target, options))

    def faces(self, image: Photo, **options: Unpack[CallOptions]) -> Faces:
        """The faces of a photo, from left to right."""
        return self._run(self._calls.faces(image, options))

    def verify(self, file: Photo, **options: Unpack[CallOptions]) -> Verification:
        """What a photo, an animation or a video carries that tells whether it is a swap."""
        return self._run(self._calls.verify(file, options))

    def submit(
        self,
        source: Source,
        target: Photo | Sequence[Photo],
        *,
        id: str | None = None,  # noqa: A002
        **options: Unpack[JobOptions],
    ) -> Job:
        """Make a job: a swap that is done when there is time, and outlives its replica.

        Args:
            source: as of `swap`.
            target: 1 to 50 photos, animations or videos to change.
            id: 20 to 64 of letters, digits, `_` and `-`. The same request with the same id is
                one job, however often it is sent; by default each call makes one.
            options: as `JobOptions` has them.
        """
        return self._run(self._calls.submit(source, target, id, options))

    def job(self, job: Job | str) -> Job:
        """The state of a job now."""
        return self._run(self._calls.job(job))

    def jobs(self, *, start: int = 0, count: int = 50) -> JobPage:
        """The caller's jobs, the newest first."""
        return self._run(self._calls.jobs(start, count))

    def progress(self, job: Job | str) -> Iterator[Job]:
        """The states of a job from now on, each when it is new; the last one has ended."""
        while True:
            yield (job := self._run(self._calls.next_state(job)))
            if job.ended:
                return

    def wait(self, job: Job | str) -> Job:
        """Wait until a job has ended, well or badly."""
        *_, last = self.progress(job)
        return last

    def result(self, job: Job | str, place: int = 0) -> File:
        """The result of a target of a job; `place` counts from 0."""
        return self._run(self._calls.result(job, place))

    def end(self, job: Job | str) -> Job:
        """Cancel a job, or delete the results of one that has ended."""
        return self._run(self._calls.end(job))

    def _run(self, plan: Plan[T]) -> T:
        outcome: Answer | Lost | None = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as done:
                value: T = done.value
                return value
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                outcome = None
            else:
                outcome = self._send(step)

    def _send(self, step: Send) -> Answer | Lost:
        try:
            return transport.answer(self._http.request(**transport.request(self._url, step)))
        except httpx.TransportError as error:
            return transport.lost(error)
