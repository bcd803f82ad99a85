"""Events to uploads: which object of which bucket an event says has been written."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from function import jsontext
from function.problems import Problem
from warmup.objects import gs_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.background.events.event import CloudEvent

OWN = "dev.ember."
"""What the types of our own events begin with."""

_FINALIZED = re.compile(r".*storage\.object\.(v1\.)?finalized?", re.IGNORECASE)
_BUCKET = re.compile(r"//storage\.googleapis\.com/projects/[^/]*/buckets/([^/]+)")
_CREATED = re.compile(r"(s3:)?(ObjectCreated:.*|Object Created)", re.IGNORECASE)
_UPLOADS = re.compile(
    r".*storage\.object\.(v1\.)?finalized?|google\.cloud\.pubsub\..*|com\.amazonaws\.s3\..*"
    r"|Object Created",
    re.IGNORECASE,
)
_GENERATION = re.compile("[0-9]{1,19}")
_USER = "x-amz-meta-"


@dataclass(frozen=True, slots=True)
class Notice:
    """An object that was written.

    Attributes:
        store: "gs" for Google Cloud Storage, "s3" for what speaks Amazon's API.
        bucket: where it is.
        name: as it is, without any encoding.
        version: what tells it from others of the same name: a generation, version or ETag; "" where
            the event does not say.
        media_type: as it was declared; None where the event does not say.
        metadata: that of the uploader; None where the event does not say.
    """

    store: str
    bucket: str
    name: str
    version: str = ""
    media_type: str | None = None
    metadata: Mapping[str, str] | None = None

    @property
    def generation(self) -> int | None:
        """The version, where it is the number of a generation."""
        return int(self.version) if _GENERATION.fullmatch(self.version) else None

    @property
    def key(self) -> str:
        """What stands for exactly this upload."""
        return f"{self.bucket}/{self.name}#{self.version}"

    @property
    def uri(self) -> str:
        """The URI of exactly this upload, for people and for other systems."""
        exactly = f"#{self.version}" if self.version else ""
        return f"{self.store}{gs_uri.uri(self.bucket, self.name)[2:]}{exactly}"


def read(event: CloudEvent) -> Notice | str:
    """The upload that an event tells of, or why it tells of none.

    Raises:
        Problem: `bad_event`, when it should tell of one, and does not say of which.
    """
    if event.type.startswith(OWN):
        return "it is an event of Ember's own"
    if isinstance(event.data, bytes) and _UPLOADS.fullmatch(event.type):
        raise Problem("bad_event", "The data of the event is not JSON.")
    data = event.data if isinstance(event.data, dict) else {}
    message = data.get("message")
    if isinstance(message, dict):
        return _pushed(message)
    if _FINALIZED.fullmatch(event.type):
        return _finalized(event, data)
    record = _record(data)
    if record is not None:
        return _s3(*record)
    return f"the type {event.type[:120]} is none that tells of an upload"


def _finalized(event: CloudEvent, data: Mapping[str, Any]) -> Notice | str:
    source = _BUCKET.fullmatch(event.source)
    bucket = _text(data, "bucket") or (source[1] if source else "")
    name = _text(data, "name") or (
        event.subject.removeprefix("objects/") if event.subject.startswith("objects/") else ""
    )
    return _google(bucket, name, data)


def _pushed(message: Mapping[str, Any]) -> Notice | str:
    """A notification of a bucket by Pub/Sub: attributes, and the object as data unless it is off.

    https://cloud.google.com/storage/docs/pubsub-notifications
    """
    found = message.get("attributes")
    attributes = found if isinstance(found, dict) else {}
    what = attributes.get("eventType")
    if what and what != "OBJECT_FINALIZE":
        return f"the message is about {str(what)[:60]}"
    data = _payload(message.get("data"))
    if not what and data.get("kind") != "storage#object":
        return "the message is about no object"
    generation = {"generation": attributes.get("objectGeneration"), **data}
    bucket = _text(attributes, "bucketId") or _text(data, "bucket")
    name = _text(attributes, "objectId") or _text(data, "name")
    return _google(bucket, name, generation)


def _google(bucket: str, name: str, data: Mapping[str, Any]) -> Notice | str:
    generation = str(data.get("generation") or "")  # both numbers and texts are about
    if not _GENERATION.fullmatch(generation):
        generation = ""
    whole = "contentType" in data or "metageneration" in data
    metadata = data.get("metadata")
    known = {str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {}
    return _checked(
        Notice(
            "gs",
            bucket,
            name,
            generation,
            _text(data, "contentType") or None,
            known if whole else None,
        )
    )


def _record(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, bool] | None:
    """What an S3 event says of the object, what happened, and whether the key is URL-encoded."""
    detail = data.get("detail") if isinstance(data.get("detail"), dict) else data
    if isinstance(record := data.get("s3"), dict):
        return record, _text(data, "eventName"), True
    if isinstance(detail, dict) and isinstance(detail.get("object"), dict):
        return detail, _text(data, "detail-type") or "Object Created", False
    return None


def _s3(record: Mapping[str, Any], what: str, encoded: bool) -> Notice | str:
    if not _CREATED.fullmatch(what):
        return f"the notification is about {what[:60]}"
    bucket, found = record.get("bucket"), record.get("object")
    facts: Mapping[str, Any] = found if isinstance(found, dict) else {}
    key = _text(facts, "key")
    version = next(
        (_text(facts, name) for name in ("versionId", "version-id", "eTag", "etag", "sequencer")
         if _text(facts, name)), "",
    )  # fmt: skip
    metadata = facts.get("userMetadata")
    known = None
    if isinstance(metadata, dict):
        known = {str(k).lower().removeprefix(_USER): str(v) for k, v in metadata.items()}
    return _checked(
        Notice(
            "s3",
            _text(bucket, "name") if isinstance(bucket, dict) else "",
            unquote_plus(key) if encoded else key,
            version,
            _text(facts, "contentType") or (known or {}).get("content-type") or None,
            known,
        )
    )


def _checked(notice: Notice) -> Notice | str:
    if not notice.bucket or not notice.name:
        raise Problem("bad_event", "The event lacks the bucket or the name of the upload.")
    if notice.name.endswith("/"):
        return "the object is a folder"
    return notice


def _payload(text: object) -> Mapping[str, Any]:
    """The object that a notification may have as data; empty where it has none.

    Raises:
        Problem: `bad_event`, when there is data, and it cannot be read.
    """
    if isinstance(text, dict):
        return text
    if not text:
        return {}
    try:
        value = jsontext.parse(base64.b64decode(str(text)))
    except ValueError:
        raise Problem("bad_event", "The data of the Pub/Sub message is not JSON.") from None
    return value if isinstance(value, dict) else {}


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""
