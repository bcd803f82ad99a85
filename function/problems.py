"""Everything that can go wrong for a caller: one table of stable codes (RFC 9457 problems).

Raise `Problem("code", "what happened here")` anywhere; the HTTP layer turns it into
`application/problem+json`, the CLI into one line and an exit code. Anything else that is raised is
a bug and is answered as `internal` without its text. What is caught somewhere has a class of its
own, so that nobody compares codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One kind of problem.

    Attributes:
        status: HTTP status.
        title: short and the same for every occurrence.
        hint: what the caller can do about it.
    """

    status: int
    title: str
    hint: str


KINDS: dict[str, ProblemType] = {
    "bad_request": ProblemType(
        400, "The request cannot be read", "Check the request against /openapi.json."
    ),
    "unauthenticated": ProblemType(
        401,
        "The request does not say who sends it",
        "Send `Authorization: Bearer` and your key or token.",
    ),
    "forbidden": ProblemType(
        403, "The caller may not do this", "Ask whoever runs this service for another tier."
    ),
    "bad_event": ProblemType(
        400,
        "The event cannot be read",
        "Send a CloudEvent 1.0 (binary, structured or batched) or a push of Pub/Sub.",
    ),
    "not_found": ProblemType(
        404, "There is nothing at this address", "See /openapi.json for the addresses."
    ),
    "method_not_allowed": ProblemType(
        405, "This address does not take this method", "Use one named in Allow."
    ),
    "not_acceptable": ProblemType(
        406, "The answer cannot be had in an accepted media type", "Accept one that is available."
    ),
    "job_conflict": ProblemType(
        409, "There is another job with this id", "Use another id for another request."
    ),
    "body_timeout": ProblemType(
        408, "The request body took too long to arrive", "Send smaller files, or send them faster."
    ),
    "body_too_large": ProblemType(413, "The request body is too large", "Send smaller files."),
    "object_too_large": ProblemType(
        413, "What is behind a URI is too large", "Use a smaller file."
    ),
    "too_many_pixels": ProblemType(413, "The image has too many pixels", "Scale the image down."),
    "unsupported_media_type": ProblemType(
        415,
        "This kind of content is not supported",
        "Send JPEG, PNG, WebP, AVIF, GIF, TIFF or BMP.",
    ),
    "url_too_long": ProblemType(414, "The address is too long", "Put fields into the body."),
    "range_not_satisfiable": ProblemType(
        416, "The file has none of these bytes", "Ask for bytes that Content-Range says there are."
    ),
    "head_too_large": ProblemType(
        431, "The head of the request is too large", "Send fewer or shorter headers."
    ),
    "too_often": ProblemType(
        429, "This was asked for a moment ago", "Try again after Retry-After seconds."
    ),
    "clip_too_long": ProblemType(
        413, "The clip is too long", "Send a shorter clip, or parts of it."
    ),
    "bad_image": ProblemType(
        422, "The image cannot be decoded", "Check the file; it may be cut short."
    ),
    "bad_clip": ProblemType(
        422, "The clip cannot be decoded", "Check the file; it may be cut short."
    ),
    "needs_job": ProblemType(
        422,
        "This takes longer than an answer can",
        "Make a job of it: send the same request with `Prefer: respond-async`.",
    ),
    "unknown_field": ProblemType(
        422, "The request has a field that does not exist", "Check its spelling."
    ),
    "missing_field": ProblemType(422, "The request lacks a field", "Add the field."),
    "bad_value": ProblemType(422, "A field has a value that is not possible", "See /openapi.json."),
    "unsupported_uri": ProblemType(
        422, "This kind of URI is not supported", "Send the file itself, or a data: URI."
    ),
    "object_not_found": ProblemType(
        422, "There is nothing at a URI", "Check the URI; what it led to may have been deleted."
    ),
    "object_forbidden": ProblemType(
        422,
        "A URI may not be used",
        "Use a public https:// address, or one that Ember has been given access to.",
    ),
    "no_source": ProblemType(
        422, "It is not known whose face is wanted", "Name a source of events.toml in the metadata."
    ),
    "output_taken": ProblemType(
        422,
        "Something else is where the output belongs",
        "Change `output` in events.toml so that each upload has a name of its own.",
    ),
    "unsignable": ProblemType(
        422,
        "The format of the result cannot be signed",
        "Ask for another format: JPEG, PNG, WebP, AVIF, GIF or TIFF for photos, MP4 or MOV for"
        " clips.",
    ),
    "no_face": ProblemType(
        422, "No face was found", "Use a photo in which the face is visible and upright."
    ),
    "too_many_faces": ProblemType(
        422,
        "The photo shows more faces than its price covers",
        "Send a part of the photo, or a larger one, whose price covers more.",
    ),
    "no_such_face": ProblemType(
        422, "There is no face with that index", "Use an index of the listed faces."
    ),
    "no_match": ProblemType(
        422, "No face looks like the reference", "Use another reference photo."
    ),
    "refused_content": ProblemType(
        422,
        "The picture shows what is not swapped here",
        "Use another photo or clip; it stays refused, and may cost tokens each time.",
    ),
    "refused_identity": ProblemType(
        422,
        "A person in it may not be swapped here",
        "Use photos of people who agree to it; whoever runs this service knows whom to ask.",
    ),
    "refused_age": ProblemType(
        422,
        "Somebody in it may be too young",
        "Use photos of adults; children are neither sources nor targets.",
    ),
    "consent_required": ProblemType(
        422,
        "It is not said who agrees to this",
        "Say in `consent` who agrees to what, or send the signed token that you were given.",
    ),
    "quota_exhausted": ProblemType(
        429,
        "There are not enough tokens left",
        "Try again after Retry-After seconds, or send smaller photos.",
    ),
    "too_many": ProblemType(
        429,
        "The caller has too much at hand at once",
        "Let some of it end, or end it, and try again.",
    ),
    "internal": ProblemType(
        500, "Something went wrong inside", "Try again; report the request id if it stays."
    ),
    "auth_unavailable": ProblemType(
        503, "Callers cannot be checked at the moment", "Try again after Retry-After seconds."
    ),
    "quota_unavailable": ProblemType(
        503, "Tokens cannot be counted at the moment", "Try again after Retry-After seconds."
    ),
    "storage_unavailable": ProblemType(
        503, "What is behind a URI cannot be reached", "Try again after Retry-After seconds."
    ),
    "audit_unavailable": ProblemType(
        503, "What is done cannot be written down", "Try again after Retry-After seconds."
    ),
    "event_in_work": ProblemType(
        503, "The event is being worked on", "Deliver it again after Retry-After seconds."
    ),
    "events_unavailable": ProblemType(
        503, "Events cannot be taken in at the moment", "Try again after Retry-After seconds."
    ),
    "jobs_unavailable": ProblemType(
        503, "Jobs cannot be reached at the moment", "Try again after Retry-After seconds."
    ),
    "sink_unavailable": ProblemType(
        503, "The result event cannot be sent", "See that what K_SINK names can be reached."
    ),
    "signing_failed": ProblemType(
        503, "The result cannot be signed at the moment", "Try again after Retry-After seconds."
    ),
    "not_ready": ProblemType(
        503, "The replica is not ready yet", "Try again after Retry-After seconds."
    ),
    "deadline_exceeded": ProblemType(
        504, "The request took too long", "Allow more time, or send smaller photos."
    ),
    "overloaded": ProblemType(
        503, "The replica has too much to do", "Try again after Retry-After seconds."
    ),
}


class Problem(Exception):
    """A failure that is reported to the caller.

    Args:
        code: a key of `KINDS`.
        detail: what happened this time, in a sentence a caller can act on; never an exception's.
        headers: HTTP headers of the answer, e.g. `Allow` or `Retry-After`.
        extra: further members of the problem object, e.g. `limit=…, value=…, field=…`.
    """

    def __init__(
        self, code: str, detail: str, *, headers: dict[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.kind = KINDS[code]
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra

    @property
    def hint(self) -> str:
        """What the caller can do about it: this time, or else about any of its kind."""
        return str(self.extra.get("hint", self.kind.hint))


class NoFaceError(Problem):
    """`no_face`: a photo shows nobody."""

    def __init__(self, detail: str, **extra: Any) -> None:
        super().__init__("no_face", detail, **extra)


class ObjectNotFoundError(Problem):
    """`object_not_found`: there is nothing at a URI."""

    def __init__(self, detail: str = "There is nothing at the URI.") -> None:
        super().__init__("object_not_found", detail)


class RetryLaterError(Problem):
    """Something that can be tried again, such as `overloaded` or `storage_unavailable`.

    Args:
        code: one that is answered with 503.
        detail: what happened this time.
        again_s: after how many seconds a further try makes sense; `Retry-After` has it rounded up.
        extra: further members of the problem object.
    """

    def __init__(self, code: str, detail: str, again_s: float, **extra: Any) -> None:
        super().__init__(code, detail, headers=retry_after(again_s), **extra)


class AbandonedError(RetryLaterError):
    """`overloaded`: nobody waits for the work any more, so that it does not begin."""

    def __init__(self) -> None:
        super().__init__("overloaded", _NO_TIME_LEFT, 1.0)


class DeadlinePassedError(RetryLaterError):
    """`overloaded`: the deadline has passed before the work could begin."""

    def __init__(self) -> None:
        super().__init__("overloaded", _NO_TIME_LEFT, 1.0)


_NO_TIME_LEFT = "There was no time left when the work could have begun."


def retry_after(seconds: float) -> dict[str, str]:
    """The header `Retry-After`: whole seconds, at least one."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
