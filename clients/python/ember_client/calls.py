"""Every call as a plan, the same for threads and for asyncio."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from ember_client.errors import UnexpectedAnswer
from ember_client.exchange import Answer, Call, Patience, Pause, Plan, exchange
from ember_client.photos import body
from ember_client.reading import read
from ember_client.results import Faces, File, Job, JobPage, Swap, Verification

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ember_client.photos import Photo, Source

T = TypeVar("T")

_JSON = "application/json"
_PHOTOS = {"like", "likes"}
_OF_CALLS = {"lane", "timeout_s", "request_id"}
_SHORTEST_S, _LONGEST_S = 0.2, 2.0


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one client.

    Attributes:
        token: a key or a token that says who calls, where the server wants one.
        patience: how long each call may take.
    """

    token: str | None
    patience: Patience

    def wake(self) -> Plan[None]:
        """Wait until a replica takes traffic."""
        yield from exchange(Call("GET", "/readyz", self._headers({})), self.patience)

    def swap(self, source: Source, target: Photo, options: Mapping[str, Any]) -> Plan[Swap]:
        """`POST /v1/swap`."""
        photos = {_field(source): source, "target": target}
        return self._post("/v1/swap", photos, options, Swap)

    def faces(self, image: Photo, options: Mapping[str, Any]) -> Plan[Faces]:
        """`POST /v1/faces`."""
        return self._post("/v1/faces", {"image": image}, options, Faces)

    def verify(self, file: Photo, options: Mapping[str, Any]) -> Plan[Verification]:
        """`POST /v1/verify`."""
        return self._post("/v1/verify", {"file": file}, options, Verification)

    def submit(
        self,
        source: Source,
        target: Photo | Sequence[Photo],
        name: str | None,
        options: Mapping[str, Any],
    ) -> Plan[Job]:
        """`PUT /v1/jobs/{id}`: the id is what makes it one job, however often it is sent."""
        photos = {_field(source): source, "target": target}
        path = _path(name or uuid.uuid4().hex)
        call = Call("PUT", path, self._headers(options), **_upload(photos, options))
        return self._read(call, Job)

    def job(self, job: Job | str) -> Plan[Job]:
        """`GET /v1/jobs/{id}`."""
        return self._read(Call("GET", _path(job), self._headers({})), Job)

    def jobs(self, start: int, count: int) -> Plan[JobPage]:
        """`GET /v1/jobs`."""
        page = {"start": str(start), "count": str(count)}
        return self._read(Call("GET", "/v1/jobs", self._headers({}), page), JobPage)

    def next_state(self, job: Job | str) -> Plan[Job]:
        """The state of a job when it is another than the one that is known."""
        pause_s = _SHORTEST_S
        while True:
            now = yield from self.job(job)
            if isinstance(job, str) or now.version != job.version or now.ended:
                return now
            yield Pause(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_S)

    def result(self, job: Job | str, place: int) -> Plan[File]:
        """`GET /v1/jobs/{id}/results/{place}`."""
        call = Call("GET", f"{_path(job)}/results/{place}", self._headers({}))
        answer = yield from exchange(call, self.patience)
        return File(answer.media_type, answer.body)

    def end(self, job: Job | str) -> Plan[Job]:
        """`DELETE /v1/jobs/{id}`."""
        return self._read(Call("DELETE", _path(job), self._headers({})), Job)

    def _post(
        self,
        path: str,
        photos: Mapping[str, Source],
        options: Mapping[str, Any],
        kind: type[T],
    ) -> Plan[T]:
        # It may be charged each time, so it is not sent twice where it may have been done.
        headers = {"Accept": _JSON, **self._headers(options)}
        call = Call("POST", path, headers, repeatable=False, **_upload(photos, options))
        return self._read(call, kind)

    def _read(self, call: Call, kind: type[T]) -> Plan[T]:
        answer = yield from exchange(call, self.patience)
        return _of(kind, answer)

    def _headers(self, options: Mapping[str, Any]) -> dict[str, str]:
        headers = {"Ember-Request-Id": options.get("request_id") or uuid.uuid4().hex}
        if "lane" in options:
            headers["Ember-Lane"] = options["lane"]
        if "timeout_s" in options:
            headers["Request-Timeout"] = f"{options['timeout_s']:.6f}"
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers


def _upload(photos: Mapping[str, Source], options: Mapping[str, Any]) -> dict[str, Any]:
    more = {name: value for name, value in options.items() if name in _PHOTOS}
    values = {name: value for name, value in options.items() if name not in _OF_CALLS | _PHOTOS}
    if isinstance(values.get("faces"), Mapping):
        values["faces"] = ",".join(f"{face}={name}" for face, name in values["faces"].items())
    if "output" in values:
        values["output"] = " ".join(values["output"])
    return body({**photos, **more}, values)


def _field(source: Source) -> str:
    return "sources" if isinstance(source, Mapping) else "source"


def _path(job: Job | str) -> str:
    return f"/v1/jobs/{quote(job if isinstance(job, str) else job.id, safe='')}"


def _of(kind: type[T], answer: Answer) -> T:
    try:
        return read(kind, json.loads(answer.body))
    except (ValueError, TypeError, AttributeError) as error:
        raise UnexpectedAnswer(answer.status, answer.body) from error
