"""Every problem by its code; `make docs` writes this file."""

from ember_client.errors import Problem


class BadRequest(Problem):
    """The request cannot be read.

    Check the request against /openapi.json.
    """

    code = "bad_request"


class Unauthenticated(Problem):
    """The request does not say who sends it.

    Send `Authorization: Bearer` and your key or token.
    """

    code = "unauthenticated"


class Forbidden(Problem):
    """The caller may not do this.

    Ask whoever runs this service for another tier.
    """

    code = "forbidden"


class BadEvent(Problem):
    """The event cannot be read.

    Send a CloudEvent 1.0 (binary, structured or batched) or a push of Pub/Sub.
    """

    code = "bad_event"


class NotFound(Problem):
    """There is nothing at this address.

    See /openapi.json for the addresses.
    """

    code = "not_found"


class MethodNotAllowed(Problem):
    """This address does not take this method.

    Use one named in Allow.
    """

    code = "method_not_allowed"


class NotAcceptable(Problem):
    """The answer cannot be had in an accepted media type.

    Accept one that is available.
    """

    code = "not_acceptable"


class JobConflict(Problem):
    """There is another job with this id.

    Use another id for another request.
    """

    code = "job_conflict"


class BodyTimeout(Problem):
    """The request body took too long to arrive.

    Send smaller files, or send them faster.
    """

    code = "body_timeout"


class BodyTooLarge(Problem):
    """The request body is too large.

    Send smaller files.
    """

    code = "body_too_large"


class ObjectTooLarge(Problem):
    """What is behind a URI is too large.

    Use a smaller file.
    """

    code = "object_too_large"


class TooManyPixels(Problem):
    """The image has too many pixels.

    Scale the image down.
    """

    code = "too_many_pixels"


class UnsupportedMediaType(Problem):
    """This kind of content is not supported.

    Send JPEG, PNG, WebP, AVIF, GIF, TIFF or BMP.
    """

    code = "unsupported_media_type"


class UrlTooLong(Problem):
    """The address is too long.

    Put fields into the body.
    """

    code = "url_too_long"


class RangeNotSatisfiable(Problem):
    """The file has none of these bytes.

    Ask for bytes that Content-Range says there are.
    """

    code = "range_not_satisfiable"


class HeadTooLarge(Problem):
    """The head of the request is too large.

    Send fewer or shorter headers.
    """

    code = "head_too_large"


class TooOften(Problem):
    """This was asked for a moment ago.

    Try again after Retry-After seconds.
    """

    code = "too_often"


class ClipTooLong(Problem):
    """The clip is too long.

    Send a shorter clip, or parts of it.
    """

    code = "clip_too_long"


class BadImage(Problem):
    """The image cannot be decoded.

    Check the file; it may be cut short.
    """

    code = "bad_image"


class BadClip(Problem):
    """The clip cannot be decoded.

    Check the file; it may be cut short.
    """

    code = "bad_clip"


class NeedsJob(Problem):
    """This takes longer than an answer can.

    Make a job of it: send the same request with `Prefer: respond-async`.
    """

    code = "needs_job"


class UnknownField(Problem):
    """The request has a field that does not exist.

    Check its spelling.
    """

    code = "unknown_field"


class MissingField(Problem):
    """The request lacks a field.

    Add the field.
    """

    code = "missing_field"


class BadValue(Problem):
    """A field has a value that is not possible.

    See /openapi.json.
    """

    code = "bad_value"


class UnsupportedUri(Problem):
    """This kind of URI is not supported.

    Send the file itself, or a data: URI.
    """

    code = "unsupported_uri"


class ObjectNotFound(Problem):
    """There is nothing at a URI.

    Check the URI; what it led to may have been deleted.
    """

    code = "object_not_found"


class ObjectForbidden(Problem):
    """A URI may not be used.

    Use a public https:// address, or one that Ember has been given access to.
    """

    code = "object_forbidden"


class NoSource(Problem):
    """It is not known whose face is wanted.

    Name a source of events.toml in the metadata.
    """

    code = "no_source"


class OutputTaken(Problem):
    """Something else is where the output belongs.

    Change `output` in events.toml so that each upload has a name of its own.
    """

    code = "output_taken"


class Unsignable(Problem):
    """The format of the result cannot be signed.

    Ask for another format: JPEG, PNG, WebP, AVIF, GIF or TIFF for photos, MP4 or MOV for clips.
    """

    code = "unsignable"


class NoFace(Problem):
    """No face was found.

    Use a photo in which the face is visible and upright.
    """

    code = "no_face"


class TooManyFaces(Problem):
    """The photo shows more faces than its price covers.

    Send a part of the photo, or a larger one, whose price covers more.
    """

    code = "too_many_faces"


class NoSuchFace(Problem):
    """There is no face with that index.

    Use an index of the listed faces.
    """

    code = "no_such_face"


class NoMatch(Problem):
    """No face looks like the reference.

    Use another reference photo.
    """

    code = "no_match"


class RefusedContent(Problem):
    """The picture shows what is not swapped here.

    Use another photo or clip; it stays refused, and may cost tokens each time.
    """

    code = "refused_content"


class RefusedIdentity(Problem):
    """A person in it may not be swapped here.

    Use photos of people who agree to it; whoever runs this service knows whom to ask.
    """

    code = "refused_identity"


class RefusedAge(Problem):
    """Somebody in it may be too young.

    Use photos of adults; children are neither sources nor targets.
    """

    code = "refused_age"


class ConsentRequired(Problem):
    """It is not said who agrees to this.

    Say in `consent` who agrees to what, or send the signed token that you were given.
    """

    code = "consent_required"


class QuotaExhausted(Problem):
    """There are not enough tokens left.

    Try again after Retry-After seconds, or send smaller photos.
    """

    code = "quota_exhausted"


class TooMany(Problem):
    """The caller has too much at hand at once.

    Let some of it end, or end it, and try again.
    """

    code = "too_many"


class Internal(Problem):
    """Something went wrong inside.

    Try again; report the request id if it stays.
    """

    code = "internal"


class AuthUnavailable(Problem):
    """Callers cannot be checked at the moment.

    Try again after Retry-After seconds.
    """

    code = "auth_unavailable"


class QuotaUnavailable(Problem):
    """Tokens cannot be counted at the moment.

    Try again after Retry-After seconds.
    """

    code = "quota_unavailable"


class StorageUnavailable(Problem):
    """What is behind a URI cannot be reached.

    Try again after Retry-After seconds.
    """

    code = "storage_unavailable"


class AuditUnavailable(Problem):
    """What is done cannot be written down.

    Try again after Retry-After seconds.
    """

    code = "audit_unavailable"


class EventInWork(Problem):
    """The event is being worked on.

    Deliver it again after Retry-After seconds.
    """

    code = "event_in_work"


class EventsUnavailable(Problem):
    """Events cannot be taken in at the moment.

    Try again after Retry-After seconds.
    """

    code = "events_unavailable"


class JobsUnavailable(Problem):
    """Jobs cannot be reached at the moment.

    Try again after Retry-After seconds.
    """

    code = "jobs_unavailable"


class SinkUnavailable(Problem):
    """The result event cannot be sent.

    See that what K_SINK names can be reached.
    """

    code = "sink_unavailable"


class SigningFailed(Problem):
    """The result cannot be signed at the moment.

    Try again after Retry-After seconds.
    """

    code = "signing_failed"


class NotReady(Problem):
    """The replica is not ready yet.

    Try again after Retry-After seconds.
    """

    code = "not_ready"


class DeadlineExceeded(Problem):
    """The request took too long.

    Allow more time, or send smaller photos.
    """

    code = "deadline_exceeded"


class Overloaded(Problem):
    """The replica has too much to do.

    Try again after Retry-After seconds.
    """

    code = "overloaded"


KINDS = {kind.code: kind for kind in Problem.__subclasses__()}
