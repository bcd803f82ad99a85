"""A job as values: what is to be done, how far it is, and both as text for the store."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from function.admission.account import Receipt
from function.documented_enum import DocumentedEnum
from function.request_context import Lane

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from function.requests import Upload

TIER = "tier"
"""Among a job's options, where replicas of earlier versions read past it: the tier of its owner."""

NAMES = "names"
"""Among a job's options, likewise: the names of those whom its photos show; see `names_of`."""


class JobState(DocumentedEnum):
    """Where a job is in its life, or one of its targets."""

    QUEUED = "queued", "it waits for its turn"
    RUNNING = "running", "it is being worked on"
    SUCCEEDED = "succeeded", "all of it is done"
    PARTLY = "partly", "some of its targets are done, the others have failed"
    FAILED = "failed", "nothing of it could be done; the reason is told"
    CANCELLED = "cancelled", "it was cancelled, or was not done within the time that jobs are kept"
    DELETED = "deleted", "it was done; its results have been deleted"

    @property
    def open(self) -> bool:
        """Whether something is still to come."""
        return self in {JobState.QUEUED, JobState.RUNNING}


class CallbackState(DocumentedEnum):
    """What became of a job's callback."""

    NONE = "none", "there is none, or the job has not ended"
    PENDING = "pending", "it is to be sent, perhaps once more"
    DELIVERED = "delivered", "the receiver has confirmed it"
    FAILED = "failed", "it was given up"


@dataclass(frozen=True, slots=True)
class Callback:
    """What gets a POST when a job has ended.

    Attributes:
        uri: where to.
        secret: signs it; `whsec_` and base64.
        images: whether the result is in it.
    """

    uri: str
    secret: str = field(repr=False)
    images: bool = False


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What is to be done: everything about a job that never changes.

    Attributes:
        id: as its owner calls it.
        subject: its owner; None where nobody has to say who he is.
        digest: of the request, to tell another one from the same.
        at: what the names of its files begin with; nobody can guess it.
        lane: how urgent it is.
        created: in seconds of Unix time.
        sources: how many photos there are of the person to put in.
        targets: how many photos are to be changed.
        like: how many photos there are of people to replace.
        options: what else a request said about the swap, by field, as it said it.
        outputs: URIs that results are written to, one for each target, or none.
        prices: tokens for each target.
        receipt: what was taken for them.
        callback: what gets a POST when it has ended.
        request_id: of the request that made it.
        trace: the `traceparent` of what follows from that request, or "".
    """

    id: str
    subject: str | None
    digest: str
    at: str
    lane: Lane
    created: float
    sources: int = 1
    targets: int = 1
    like: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    prices: tuple[int, ...] = ()
    receipt: Receipt | None = None
    callback: Callback | None = None
    request_id: str = ""
    trace: str = ""

    @property
    def key(self) -> str:
        """The name of its record, which does not show the caller."""
        return key_of(self.subject, self.id)

    @property
    def owner(self) -> str:
        """Stands for its owner in the store."""
        return owner_of(self.subject)

    @property
    def holder(self) -> str:
        """Whose room its photos take; "" where nobody has to say who he is."""
        return "" if self.subject is None else self.owner

    @property
    def message_id(self) -> str:
        """What its callback is called; from it nobody learns where its photos are."""
        return "msg_" + _digest(f"callback\n{self.at}")

    def source(self, place: int) -> str:
        """The name of the file of a source."""
        return f"{self.at}/source-{place}"

    def target(self, place: int) -> str:
        """The name of the file of a target."""
        return f"{self.at}/target-{place}"

    def reference(self, place: int) -> str:
        """The name of the file of a photo of somebody to replace."""
        return f"{self.at}/like-{place}" if place else f"{self.at}/like"

    def names(self, field: str, count: int) -> list[str]:
        """Whom the photos of `source` or `like` show; "" where a request names nobody."""
        return self.options.get(NAMES, {}).get(field) or [""] * count

    def result(self, place: int) -> str:
        """The name of the file of a result."""
        return f"{self.at}/result-{place}"

    def part(self, place: int, number: int) -> str:
        """The name of the file of a finished part of a clip."""
        return f"{self.at}/part-{place}-{number}"

    @property
    def inputs(self) -> list[str]:
        """The names of all photos that came with it."""
        sources = [self.source(place) for place in range(self.sources)]
        targets = [self.target(place) for place in range(self.targets)]
        return [*sources, *targets, *(self.reference(place) for place in range(self.like))]

    @property
    def results(self) -> list[str]:
        """The names of all its results."""
        return [self.result(place) for place in range(self.targets)]

    def text(self) -> str:
        """As text for the store."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `text`."""
        found = json.loads(text)
        receipt, callback = found["receipt"], found["callback"]
        found |= {
            "lane": Lane(found["lane"]),
            "outputs": tuple(found["outputs"]),
            "prices": tuple(found["prices"]),
            "receipt": Receipt(**receipt) if receipt else None,
            "callback": Callback(**callback) if callback else None,
        }
        return cls(**found)


@dataclass(frozen=True, slots=True)
class JobItem:
    """One target of a job.

    Attributes:
        state: where it is; `RUNNING` also after a crash, when it has not been taken up again.
        result: what is known about the result, once there is one.
        problem: why there is none, once that is known.
        frames: of a clip: how many are done, and how many there are.
        parts: of a clip: how many are done and kept.
    """

    state: JobState = JobState.QUEUED
    result: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None
    frames: tuple[int, int] | None = None
    parts: int = 0

    def text(self) -> str:
        """As text for the store."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `text`."""
        found = json.loads(text)
        frames = found.get("frames")
        return cls(
            JobState(found["state"]),
            found["result"],
            found["problem"],
            tuple(frames) if frames else None,
            found.get("parts", 0),
        )


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the store has it.

    Attributes:
        spec: what is to be done.
        state: where it is.
        items: its targets.
        version: grows with every change.
        changed: when it last changed, in seconds of Unix time.
        ends: when it is forgotten, likewise.
        tries: how often it was taken up.
        call: what became of its callback.
        calls: how often that was tried.
        call_note: why it has not worked so far.
    """

    spec: JobSpec
    state: JobState
    items: tuple[JobItem, ...]
    version: int
    changed: float
    ends: float
    tries: int = 0
    call: CallbackState = CallbackState.NONE
    calls: int = 0
    call_note: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The job that a record is about."""
        spec = JobSpec.parse(fields["spec"])
        items = (fields.get(f"item:{place}") for place in range(spec.targets))
        return cls(
            spec=spec,
            state=JobState(fields["state"]),
            items=tuple(JobItem.parse(text) if text else JobItem() for text in items),
            version=int(fields["version"]),
            changed=int(fields["changed"]) / 1e3,
            ends=int(fields["ends"]) / 1e3,
            tries=int(fields.get("tries", 0)),
            call=CallbackState(fields.get("call", CallbackState.NONE)),
            calls=int(fields.get("calls", 0)),
            call_note=fields.get("call_note", ""),
        )

    @property
    def done(self) -> int:
        """How many targets are done, well or badly."""
        return sum(not item.state.open for item in self.items)

    @property
    def kept(self) -> list[str]:
        """The names of all of its files that may be there."""
        return [*self.spec.inputs, *self.spec.results, *self.leftovers]

    @property
    def leftovers(self) -> list[str]:
        """The names of parts of clips, one more than is known of."""
        return [
            self.spec.part(place, number)
            for place, item in enumerate(self.items)
            if item.frames
            for number in range(item.parts + 1)
        ]

    def tokens_not_started(self) -> int:
        """The tokens of the targets that nobody has started."""
        pairs = zip(self.items, self.spec.prices, strict=False)
        return sum(price for item, price in pairs if item.state is JobState.QUEUED)


def names_of(sources: Sequence[Upload], likes: Sequence[Upload]) -> dict[str, Any]:
    """The names of those whom photos show, as an option of a job; nothing where there are none."""
    if not any(each.name for each in sources):
        return {}
    names = {"source": [each.name for each in sources], "like": [each.name for each in likes]}
    return {NAMES: names}


def outcome(items: tuple[JobItem, ...]) -> JobState:
    """The state of a job, from its targets, which are all done."""
    states = {item.state for item in items}
    if states == {JobState.SUCCEEDED}:
        return JobState.SUCCEEDED
    return JobState.PARTLY if JobState.SUCCEEDED in states else JobState.FAILED


def key_of(subject: str | None, id: str) -> str:  # noqa: A002
    """The name of the record of a job; ids of different callers never give the same."""
    return _digest(f"{subject or ''}\n{id}")


def owner_of(subject: str | None) -> str:
    """Stands for an owner of jobs in the store."""
    return _digest(subject or "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
