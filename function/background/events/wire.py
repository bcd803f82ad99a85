"""Requests to events: CloudEvents in all three modes, Pub/Sub pushes, and MinIO's own form.

What senders really do decides, not what they should: the form follows from what is there, and a
`Content-Type` only settles what is not clear from that.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from function import jsontext
from function.background.events.event import BATCH, STRUCTURED, CloudEvent
from function.problems import Problem
from function.telemetry.trace_context import TraceContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PUSHED = "google.cloud.pubsub.topic.v1.messagePublished"
"""The type that a Pub/Sub push counts as, which is how Eventarc names the same message."""

NOTIFIED = "com.amazonaws.s3.notification"
"""The type that a bare S3 notification counts as."""

MOST = 1000
"""Events in one request."""

_REQUIRED = ("id", "source", "type")
_VERSIONS = ("1.0", "0.3", "")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one request brought; `batch` tells whether it may be answered with a batch."""

    events: tuple[CloudEvent, ...]
    batch: bool = False


def parse(headers: Iterable[tuple[str, str]], body: bytes) -> Delivery:
    """Read a request.

    Args:
        headers: in any case; of those that come twice the last counts.
        body: all of it.

    Raises:
        Problem: `bad_event`, with what is missing.
    """
    named = {name.lower(): value for name, value in headers}
    kind = named.get("content-type", "").partition(";")[0].strip().lower()
    binary = {name[3:] for name in named if name.startswith("ce-")}
    if kind not in {STRUCTURED, BATCH} and binary & {*_REQUIRED, "specversion"}:
        attributes = {name: _attribute(name, named[f"ce-{name}"]) for name in binary}
        trace = {name: named.get(name, "") for name in ("traceparent", "tracestate")}
        return _delivery([_event(trace | attributes, _parsed(body))])
    value = _parsed(body)
    if {"bucketid", "eventtype"} <= named.keys():
        return _delivery([_unwrapped(value, named)])
    if isinstance(value, list):
        return Delivery(_delivery([_structured(each, named) for each in value]).events, batch=True)
    if isinstance(value, dict) and isinstance(value.get("message"), dict):
        return _delivery([_pushed(value, named)])
    if isinstance(value, dict) and isinstance(value.get("Records"), list):
        return _delivery([CloudEvent("", "s3", NOTIFIED, value, trace=_trace(named))])
    return _delivery([_structured(value, named)])


def _delivery(events: list[CloudEvent]) -> Delivery:
    several = tuple(each for event in events for each in _each_record(event))
    if len(several) > MOST:
        raise _bad(f"There are more than {MOST} events in the request.")
    return Delivery(several)


def _each_record(event: CloudEvent) -> list[CloudEvent]:
    """An event for each record of an S3 notification; any other event as it is."""
    records = event.data.get("Records") if isinstance(event.data, dict) else None
    if not isinstance(records, list):
        return [event]
    return [
        replace(event, id=f"{event.id}#{_record_id(record)}", data=record) for record in records
    ]


def _record_id(record: object) -> str:
    """What makes a record this one, wherever in which notification it stands."""
    found: Any = record
    try:
        answers, name = found["responseElements"], found["s3"]["object"]["key"]
        return f"{name}#{answers['x-amz-request-id']}"
    except (KeyError, TypeError):
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _attribute(name: str, value: str) -> str:
    """The value of an attribute that a header has.

    Quotes and what is escaped in them first, then percent-encoding, once, of UTF-8: section 3.1.3.2
    of the HTTP binding of CloudEvents 1.0.2.

    Raises:
        Problem: `bad_event`, for what is not encoded like that.
    """
    text = value.strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        text = re.sub(r"\\(.)", r"\1", quoted[1])
    if (text.startswith('"') and not quoted) or _BAD_ESCAPE.search(text):
        raise _bad(f"The header `ce-{name[:40]}` is not well encoded.", attribute=name[:40])
    try:
        return unquote_to_bytes(text.encode(errors="surrogateescape")).decode()
    except ValueError:
        raise _bad(f"The header `ce-{name[:40]}` is not UTF-8.", attribute=name[:40]) from None


def _structured(value: object, headers: Mapping[str, str]) -> CloudEvent:
    if not isinstance(value, dict):
        raise _bad("The body is no CloudEvent, no batch of them, and no Pub/Sub push.")
    data = value.get("data")
    if "data_base64" in value:
        data = _parsed(_decoded(value["data_base64"], "data_base64"))
    elif isinstance(data, str):
        data = _parsed(data.encode())
    trace = {name: headers.get(name, "") for name in ("traceparent", "tracestate")}
    return _event(trace | value, data)


def _pushed(value: Mapping[str, Any], headers: Mapping[str, str]) -> CloudEvent:
    """A push of Pub/Sub; the message is the data."""
    message = value["message"]
    found = message.get("messageId") or message.get("message_id")
    if not isinstance(found, str) or not found:
        raise _bad("The Pub/Sub message lacks `messageId`.")
    source = f"//pubsub.googleapis.com/{value.get('subscription', '')}"
    return CloudEvent(found, source, PUSHED, value, trace=_trace(headers))


def _unwrapped(value: object, headers: Mapping[str, str]) -> CloudEvent:
    """A push of Pub/Sub whose message is the body, and whose attributes are headers."""
    names = ("bucketId", "objectId", "objectGeneration", "eventType")
    attributes = {name: _utf8(name, headers) for name in names if name.lower() in headers}
    id_ = _utf8("x-goog-pubsub-message-id", headers)
    message = {"messageId": id_, "attributes": attributes, "data": value}
    source = _utf8("x-goog-pubsub-subscription-name", headers)
    return _pushed({"message": message, "subscription": source}, headers)


def _utf8(name: str, headers: Mapping[str, str]) -> str:
    """A header's value, which Pub/Sub does not encode."""
    value = headers.get(name.lower(), "")
    try:
        return value.encode(errors="surrogateescape").decode()
    except ValueError:
        raise _bad(f"The header `{name}` is not UTF-8.", attribute=name) from None


def _event(attributes: Mapping[str, Any], data: Any) -> CloudEvent:
    texts = {name: attributes.get(name) for name in (*_REQUIRED, "subject")}
    for name in _REQUIRED:
        if not isinstance(texts[name], str) or not texts[name]:
            raise _bad(f"The event lacks the attribute `{name}`.", attribute=name)
    version = attributes.get("specversion", "")
    if version not in _VERSIONS:
        raise _bad("The event's `specversion` is not 1.0.", attribute="specversion")
    return CloudEvent(
        str(texts["id"]),
        str(texts["source"]),
        str(texts["type"]),
        data,
        texts["subject"] if isinstance(texts["subject"], str) else "",
        _trace(attributes),
    )


def _trace(found: Mapping[str, Any]) -> TraceContext | None:
    return TraceContext.parse(found.get("traceparent"), found.get("tracestate"))


def _parsed(data: bytes) -> Any:
    """The data as JSON where it is JSON, whatever it is called."""
    if not data.strip():
        return None
    try:
        return jsontext.parse(data)
    except ValueError:
        return data


def _decoded(text: object, name: str) -> bytes:
    try:
        return base64.b64decode(text if isinstance(text, str) else "!", validate=True)
    except (binascii.Error, ValueError):
        raise _bad(f"`{name}` is not base64.", attribute=name) from None


def _bad(detail: str, **extra: Any) -> Problem:
    return Problem("bad_event", detail, **extra)
