"""What calls take by name; docs/http.md and docs/jobs.md say what each means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ember_client.photos import Photo


class CallOptions(TypedDict, total=False):
    """Of every call.

    Attributes:
        lane: how urgent it is.
        timeout_s: seconds after which the answer is of no use any more. What cannot be done by
            then is refused at once.
        request_id: by which logs and audit have it; else one is made.
    """

    lane: Literal["interactive", "standard", "bulk"]
    timeout_s: float
    request_id: str


class SwapOptions(CallOptions, total=False):
    """Of a swap.

    Attributes:
        faces: which faces of the target: `all`, `largest`, `index:0,2`, `like`; of several people,
            who is put onto each: `{0: "ann", "old": "bob"}`, where `old` is one of `likes`.
        like: a photo of the person to replace; with `faces="like"`.
        likes: photos of people to replace, by name.
        format: of the result; by default the target's own, else PNG.
        quality: 1 to 100, where the format loses quality.
        boost: side in pixels up to which faces are made.
        weight: how much of the source's identity, 0 to 100 %.
        enhance: how much of the enhanced face, 0 to 100 %.
        masks: what decides which part of a face is replaced, with commas between.
        consent: who says that the person on the sources agrees, and to what.
        label: the language of a label in the picture, or `off`.
    """

    faces: str | Mapping[int | str, str]
    like: Photo
    likes: Mapping[str, Photo]
    format: Literal["jpeg", "png", "webp", "avif"]
    quality: int
    boost: int
    weight: int
    enhance: int
    masks: str
    consent: str
    label: str


class JobOptions(SwapOptions, total=False):
    """Of a job.

    Attributes:
        output: URIs that the results are written to, one for each target.
        callback: the URI that is told when the job has ended.
        callback_secret: `whsec_` and base64; what is told is signed with it.
        callback_image: whether it is told the photo as well.
    """

    output: Sequence[str]
    callback: str
    callback_secret: str
    callback_image: Literal["base64", "none"]
