"""What calls answer. Lengths are pixels, angles degrees, times as the names say."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (`reading` looks at types)
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import os

JobState: TypeAlias = Literal[
    "queued", "running", "succeeded", "partly", "failed", "cancelled", "deleted"
]


@dataclass(frozen=True, slots=True)
class File:
    """A photo, an animation or a video, as it is in a file."""

    media_type: str
    data: bytes = field(metadata={"name": "base64"}, repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it; what was there is replaced.

        Raises:
            OSError: it cannot be written.
        """
        place = Path(path)
        place.write_bytes(self.data)
        return place


@dataclass(frozen=True, slots=True)
class Box:
    """Whole pixels; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True, slots=True)
class Pose:
    """How a head is turned: the nose to the image's right, down; the head clockwise."""

    yaw: float
    pitch: float
    roll: float


@dataclass(frozen=True, slots=True)
class Identity:
    """Distances: of the face to the source before and after the swap, and to what it was.

    Below 0.6 is the same person.
    """

    before: float
    after: float
    kept: float


@dataclass(frozen=True, slots=True)
class Face:
    """A face of a photo.

    Attributes:
        index: its place from the left, from 0.
        box: where it is.
        score: how sure the detector is, from 0 to 1.
        found_by: the search pass that found it.
        points: x and y of left eye, right eye, nose tip, left and right corner of the mouth.
        pose: how it is turned.
        warnings: codes.
        identity: of a swapped face.
        source: of several people, the name of the one who was put in.
    """

    index: int
    box: Box
    score: float
    found_by: str
    points: tuple[tuple[float, float], ...]
    pose: Pose
    warnings: tuple[str, ...]
    identity: Identity | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class SourceFace:
    """The face of the sources that was used."""

    box: Box
    pose: Pose


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a stage took, and when it began, from the beginning of the request."""

    stage: str
    start_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class WatermarkMark:
    """A mark that was put into the pixels of these faces, or of the whole picture."""

    payload: str
    faces: tuple[int, ...]
    picture: bool


@dataclass(frozen=True, slots=True)
class SignatureMark:
    """A signature that was made; `by` is the name in the certificate."""

    by: str


@dataclass(frozen=True, slots=True)
class Marks:
    """What a result carries that tells that it is a swap; None where it has none of it."""

    metadata: bool
    source_type: str
    watermark: WatermarkMark | None
    signature: SignatureMark | None
    label: str | None


@dataclass(frozen=True, slots=True)
class Swap:
    """A swapped photo, and all that is known of it.

    Attributes:
        request_id: of the request.
        width: of the photo.
        height: of the photo.
        image: the photo.
        source: the face that was put in; None of several people.
        faces: those of the target that were replaced, from left to right.
        marks: what the photo carries.
        warnings: codes of what may look wrong, for the whole photo.
        timings: of each stage.
        sources: of several people, the face of each by name.
    """

    request_id: str
    width: int
    height: int
    image: File
    source: SourceFace | None
    faces: tuple[Face, ...]
    marks: Marks
    warnings: tuple[str, ...]
    timings: tuple[Timing, ...]
    sources: Mapping[str, SourceFace] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the photo; what was there is replaced.

        Raises:
            OSError: it cannot be written.
        """
        return self.image.save(path)


@dataclass(frozen=True, slots=True)
class Faces:
    """The faces of a photo, from left to right; `warnings` are codes."""

    request_id: str
    width: int
    height: int
    faces: tuple[Face, ...]
    warnings: tuple[str, ...]
    timings: tuple[Timing, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature (C2PA) in a file.

    Attributes:
        valid: whether nothing was changed since.
        trusted: whether the server knows who has signed.
        by: the name in the certificate.
        when: as a time stamp says, if there is one.
        swap: whether it says that the file is a swap.
        problems: what is wrong with it.
    """

    valid: bool
    trusted: bool
    by: str
    when: str | None
    swap: bool
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a file says of itself."""

    source_type: str | None
    software: str | None
    request_id: str | None
    aigc: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Watermark:
    """A mark in pixels; `confidence` is standard deviations above what chance gives."""

    payload: str
    key: int
    confidence: float
    where: str
    face: int | None


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a file is a swap, by what it carries; that nothing is found proves nothing."""

    request_id: str
    media_type: str
    width: int
    height: int
    verdict: Literal["swap", "unknown"]
    signature: Signature | None
    metadata: Metadata | None
    watermarks: tuple[Watermark, ...]
    lost: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of how many: targets of a job, or frames of a video."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """Where a result is and what it is like; `Client.result` has the file itself."""

    uri: str
    media_type: str
    bytes: int
    width: int
    height: int
    faces: int
    warnings: tuple[str, ...]
    marks: Marks | None = None


@dataclass(frozen=True, slots=True)
class JobProblem:
    """Why a target of a job could not be done; `code` is as of a `Problem`."""

    code: str
    title: str
    detail: str
    hint: str


@dataclass(frozen=True, slots=True)
class JobItem:
    """A target of a job; `image` is the result, in callbacks that were to have it."""

    state: JobState
    frames: Progress | None
    result: JobResult | None
    problem: JobProblem | None
    image: File | None = None


@dataclass(frozen=True, slots=True)
class Callback:
    """What became of telling that a job has ended."""

    state: Literal["none", "pending", "delivered", "failed"]
    tries: int
    note: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """The state of a job.

    Attributes:
        id: as its maker called it.
        state: of all of it.
        lane: how urgent it is.
        created: when it was made.
        changed: when it last changed.
        expires: when it will be forgotten.
        version: grows with every change.
        progress: targets that have ended, well or badly.
        items: the targets.
        callback: what became of it, if one was wanted.
        tokens: what it costs.
        request_id: of the request that made it.
        position: how many jobs come before it, while it waits.
        eta_s: seconds until it is done, as far as the replica can tell.
    """

    id: str
    state: JobState
    lane: str
    created: datetime
    changed: datetime
    expires: datetime
    version: int
    progress: Progress
    items: tuple[JobItem, ...]
    callback: Callback | None
    tokens: int
    request_id: str
    position: int | None = None
    eta_s: float | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing will be done for it any more."""
        return self.state not in {"queued", "running"}


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some of the caller's jobs, the newest first; `next` is the start of those that follow."""

    jobs: tuple[Job, ...]
    next: int | None
