"""Requests to events: CloudEvents in all three modes, Pub/Sub pushes, and MinIO's own form.

What senders really do decides, not what they should: the form is told from what is there, and a
`Content-Type` only settles what is not clear from that.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from function.events.event import BATCH, STRUCTURED, Event
from function.problems import Problem
from function.tracecontext import TraceContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PUSHED = "google.cloud.pubsub.topic.v1.messagePublished"
"""The type that a Pub/Sub push counts as, which is how Eventarc names the same message."""

NOTIFIED = "com.amazonaws.s3.notification"
"""The type that a bare S3 notification counts as."""

MOST = 1000
"""Events in one request."""

_REQUIRED = ("id", "source", "type")
_VERSIONS = {"1.0", "0.3", ""}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one request brought; `batch` tells whether it may be answered with a batch."""

    events: tuple[Event, ...]
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
    binary = {
        name[3:]: unquote(value) for name, value in named.items() if name.startswith("ce-")
    } | {"traceparent": named.get("ce-traceparent", named.get("traceparent", ""))}
    if kind not in {STRUCTURED, BATCH} and binary.keys() & {*_REQUIRED, "specversion"}:
        state = named.get("ce-tracestate", named.get("tracestate", ""))
        return _delivery([_event(binary | {"tracestate": state}, _parsed(body))])
    value = _parsed(body)
    if {"bucketid", "eventtype"} <= named.keys():
        return _delivery([_unwrapped(value, named)])
    if isinstance(value, list):
        return Delivery(_delivery([_structured(each, named) for each in value]).events, batch=True)
    if isinstance(value, dict) and isinstance(value.get("message"), dict):
        return _delivery([_pushed(value, named)])
    if isinstance(value, dict) and isinstance(value.get("Records"), list):
        return _delivery([Event("", "s3", NOTIFIED, value, trace=_trace(named))])
    return _delivery([_structured(value, named)])


def _delivery(events: list[Event]) -> Delivery:
    several = tuple(each for event in events for each in _each_record(event))
    if len(several) > MOST:
        raise _bad(f"There are more than {MOST} events in the request.")
    return Delivery(several)


def _each_record(event: Event) -> list[Event]:
    """An event for each record of an S3 notification; any other event as it is."""
    records = event.data.get("Records") if isinstance(event.data, dict) else None
    if not isinstance(records, list):
        return [event]
    return [
        replace(event, id=f"{event.id}#{_record_id(record, place)}", data=record)
        for place, record in enumerate(records)
    ]


def _record_id(record: object, place: int) -> str:
    """What makes a record this one."""
    found: Any = record
    try:
        answers, name = found["responseElements"], found["s3"]["object"]["key"]
        return f"{name}#{answers['x-amz-request-id']}"
    except (KeyError, TypeError):
        return str(place)


def _structured(value: object, headers: Mapping[str, str]) -> Event:
    if not isinstance(value, dict):
        raise _bad("The body is no CloudEvent, no batch of them, and no Pub/Sub push.")
    data = value.get("data")
    if "data_base64" in value:
        data = _parsed(_decoded(value["data_base64"], "data_base64"))
    elif isinstance(data, str):
        data = _parsed(data.encode())
    trace = {name: headers.get(name, "") for name in ("traceparent", "tracestate")}
    return _event(trace | value, data)


def _pushed(value: Mapping[str, Any], headers: Mapping[str, str]) -> Event:
    """A push of Pub/Sub; the message is the data."""
    message = value["message"]
    found = message.get("messageId") or message.get("message_id")
    if not isinstance(found, str) or not found:
        raise _bad("The Pub/Sub message lacks `messageId`.")
    source = f"//pubsub.googleapis.com/{value.get('subscription', '')}"
    return Event(found, source, PUSHED, value, trace=_trace(headers))


def _unwrapped(value: object, headers: Mapping[str, str]) -> Event:
    """A push of Pub/Sub whose message is the body, and whose attributes are headers."""
    names = ("bucketId", "objectId", "objectGeneration", "eventType")
    attributes = {name: headers[name.lower()] for name in names if name.lower() in headers}
    id_ = headers.get("x-goog-pubsub-message-id", "")
    message = {"messageId": id_, "attributes": attributes, "data": value}
    source = headers.get("x-goog-pubsub-subscription-name", "")
    return _pushed({"message": message, "subscription": source}, headers)


def _event(attributes: Mapping[str, Any], data: Any) -> Event:
    texts = {name: attributes.get(name) for name in (*_REQUIRED, "subject")}
    for name in _REQUIRED:
        if not isinstance(texts[name], str) or not texts[name]:
            raise _bad(f"The event lacks the attribute `{name}`.", attribute=name)
    version = attributes.get("specversion", "")
    if version not in _VERSIONS:
        raise _bad("The event's `specversion` is not 1.0.", attribute="specversion")
    return Event(
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
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _decoded(text: object, name: str) -> bytes:
    try:
        return base64.b64decode(text if isinstance(text, str) else "!", validate=True)
    except (binascii.Error, ValueError):
        raise _bad(f"`{name}` is not base64.", attribute=name) from None


def _bad(detail: str, **extra: Any) -> Problem:
    return Problem("bad_event", detail, **extra)
