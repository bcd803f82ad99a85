"""What the API says of a job: plain values, ready for JSON."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from function.background.facts import moment
from function.background.jobs.job import JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.background.jobs.job import Job, JobItem

PATH = "/v1/jobs"


def of_job(job: Job) -> dict[str, Any]:
    """Everything about a job but where it stands in the queue."""
    spec = job.spec
    call: dict[str, Any] | None = None
    if spec.callback:
        call = {"state": str(job.call), "tries": job.calls, "note": job.call_note or None}
    return {
        "id": spec.id,
        "state": str(job.state),
        "lane": str(spec.lane),
        "created": moment(spec.created),
        "changed": moment(job.changed),
        "expires": moment(job.ends),
        "version": job.version,
        "progress": {"done": job.done, "total": spec.targets},
        "items": [_item(job, at, item) for at, item in enumerate(job.items)],
        "callback": call,
        "tokens": sum(spec.prices),
        "request_id": spec.request_id,
    }


def of_image(result: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """A result itself."""
    return {"media_type": result["media_type"], "base64": b64encode(data).decode()}


def _item(job: Job, at: int, item: JobItem) -> dict[str, Any]:
    state = item.state
    if state.open and job.state in {JobState.CANCELLED, JobState.DELETED}:
        state = job.state
    result = dict(item.result) if item.result else None
    if result:
        result.setdefault("uri", f"{PATH}/{job.spec.id}/results/{at}")
    problem = item.problem if state is JobState.FAILED else None
    frames = {"done": item.frames[0], "total": item.frames[1]} if item.frames else None
    return {"state": str(state), "frames": frames, "result": result, "problem": problem}
