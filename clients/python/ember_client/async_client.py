"""The client for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, TypeVar

import httpx

from ember_client import transport
from ember_client.calls import Calls
from ember_client.exchange import Patience, Pause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType
    from typing import Unpack

    from ember_client.exchange import Answer, Lost, Plan, Send
    from ember_client.options import CallOptions, JobOptions, SwapOptions
    from ember_client.photos import Photo, Source
    from ember_client.results import Faces, File, Job, JobPage, Swap, Verification

T = TypeVar("T")


class AsyncClient:
    """Calls an Ember server without blocking the event loop; else the same as `Client`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        patience_s: float = 120.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._url, self._own = url, http is None
        self._http = http or httpx.AsyncClient()
        self._calls = Calls(token, Patience(patience_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._own:
            await self._http.aclose()

    async def wake(self) -> None:
        await self._run(self._calls.wake())

    async def swap(
        self,
        source: Source,
        target: Photo,
        **options: Unpack[SwapOptions],
    ) -> Swap:
        return await self._run(self._calls.swap(source, target, options))

    async def faces(self, image: Photo, **options: Unpack[CallOptions]) -> Faces:
        return await self._run(self._calls.faces(image, options))

    async def verify(self, file: Photo, **options: Unpack[CallOptions]) -> Verification:
        return await self._run(self._calls.verify(file, options))

    async def submit(
        self,
        source: Source,
        target: Photo | Sequence[Photo],
        *,
        id: str | None = None,  # noqa: A002
        **options: Unpack[JobOptions],
    ) -> Job:
        return await self._run(self._calls.submit(source, target, id, options))

    async def job(self, job: Job | str) -> Job:
        return await self._run(self._calls.job(job))

    async def jobs(self, *, start: int = 0, count: int = 50) -> JobPage:
        return await self._run(self._calls.jobs(start, count))

    async def progress(self, job: Job | str) -> AsyncIterator[Job]:
        while True:
            yield (job := await self._run(self._calls.next_state(job)))
            if job.ended:
                return

    async def wait(self, job: Job | str) -> Job:
        return [each async for each in self.progress(job)][-1]

    async def result(self, job: Job | str, place: int = 0) -> File:
        return await self._run(self._calls.result(job, place))

    async def end(self, job: Job | str) -> Job:
        return await self._run(self._calls.end(job))

    async def _run(self, plan: Plan[T]) -> T:
        outcome: Answer | Lost | None = None
        while True:
            try:
                step = plan.send(outcome)
            except StopIteration as done:
                value: T = done.value
                return value
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                outcome = None
            else:
                outcome = await self._send(step)

    async def _send(self, step: Send) -> Answer | Lost:
        try:
            response = await self._http.request(**transport.request(self._url, step))
        except httpx.TransportError as error:
            return transport.lost(error)
        return transport.answer(response)
