"""One upload in each of the forms in which real senders tell of it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from urllib.parse import quote, quote_plus

from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

FINALIZED = "google.cloud.storage.object.v1.finalized"


def resource(bucket, name, generation=17, **more):
    """An object as Google's JSON API tells it: numbers are text."""
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{generation}",
        "bucket": bucket,
        "name": name,
        "generation": str(generation),
        "metageneration": "1",
        "contentType": "image/jpeg",
        "size": "352104",
        "timeCreated": "2026-11-29T12:00:00.000Z",
        **more,
    }


def id_of(data):
    """The id of the event of an upload: the same for every delivery."""
    return f"{data['name']}#{data['generation']}"


def cloud_event(data, id=None, **attributes):  # noqa: A002
    """An event made by the SDK."""
    own = {
        "id": id or id_of(data),
        "type": FINALIZED,
        "source": f"//storage.googleapis.com/projects/_/buckets/{data['bucket']}",
        "subject": f"objects/{data['name']}",
        "time": datetime(2026, 11, 29, 12, tzinfo=UTC),
        "datacontenttype": "application/json",
    }
    return CloudEvent(attributes=own | attributes, data=data)


def binary(data, **attributes):
    message = to_binary_event(cloud_event(data, **attributes))
    return dict(message.headers), bytes(message.body)


def structured(data, **attributes):
    message = to_structured_event(cloud_event(data, **attributes))
    return dict(message.headers), bytes(message.body)


def batch(*bodies):
    told = [json.loads(body) for body in bodies]
    return {"Content-Type": "application/cloudevents-batch+json"}, json.dumps(told).encode()


def attributes_of(data):
    return {
        "bucketId": data["bucket"],
        "objectId": data["name"],
        "objectGeneration": data["generation"],
        "eventType": "OBJECT_FINALIZE",
        "notificationConfig": "projects/_/buckets/b/notificationConfigs/1",
        "payloadFormat": "JSON_API_V1",
    }


def pushed(data, *, payload=True, id=None, **more):  # noqa: A002
    """A push of Pub/Sub, as it sends it."""
    coded = base64.b64encode(json.dumps(data).encode()).decode() if payload else ""
    id = id or id_of(data)  # noqa: A001
    message = {"attributes": attributes_of(data) | more, "messageId": id, "message_id": id}
    message |= {"data": coded} if coded else {}
    body = {"message": message, "subscription": "projects/p/subscriptions/s"}
    return {"Content-Type": "application/json"}, json.dumps(body).encode()


def published(data, id=None):  # noqa: A002
    """The same by Eventarc or a Knative source: a CloudEvent around the message."""
    _, body = pushed(data, id=id)
    headers = {
        "ce-id": quote(id or id_of(data)),
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "ce-source": "//pubsub.googleapis.com/projects/p/topics/t",
        "Content-Type": "application/json",
    }
    return headers, body


def unwrapped(data, id=None):  # noqa: A002
    """The same with payload unwrapping and metadata, where attributes are headers."""
    headers = attributes_of(data) | {
        "x-goog-pubsub-message-id": quote(id or id_of(data)),
        "x-goog-pubsub-subscription-name": "projects/p/subscriptions/s",
        "Content-Type": "application/json",
    }
    return headers, json.dumps(data).encode()


def record(bucket, name, version="v1", event="s3:ObjectCreated:Put", **more):
    return {
        "eventVersion": "2.0",
        "eventSource": "minio:s3",
        "eventName": event,
        "responseElements": {"x-amz-request-id": "17D2"},
        "s3": {
            "bucket": {"name": bucket},
            "object": {"key": quote_plus(name), "size": 3, "versionId": version, **more},
        },
    }


def minio(*records):
    """A notification as MinIO's webhook sends it, which is no CloudEvent."""
    value = {"EventName": "s3:ObjectCreated:Put", "Key": "b/n", "Records": list(records)}
    return {"Content-Type": "application/json"}, json.dumps(value).encode()


ALL = {
    "binary": binary,
    "structured": structured,
    "batch": lambda data: batch(structured(data)[1]),
    "pushed": pushed,
    "pushed without payload": lambda data: pushed(data, payload=False),
    "published": published,
}
