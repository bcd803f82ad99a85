"""Callbacks of jobs: signed by the server's own code, opened by the client's."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ember_client import Client, InvalidSignature, open_webhook
from function.background.jobs import webhook
from tests.clients.photos import COLLINS, HOPPER
from tests.function.background.jobs.conftest import receiving
from tests.function.raw import eventually
from tests.running import running

SECRET = "whsec_" + "c2VjcmV0" * 4
OTHER = "whsec_" + "b3RoZXJz" * 4
NOW = 1_764_417_600
JOB = {
    "id": "a",
    "state": "failed",
    "lane": "bulk",
    "created": "2026-11-29T12:00:00.512Z",
    "changed": "2026-11-29T12:00:01.512Z",
    "expires": "2026-11-30T12:00:00.512Z",
    "version": 3,
    "progress": {"done": 0, "total": 0},
    "items": [],
    "callback": None,
    "tokens": 0,
    "request_id": "b",
}
BODY = json.dumps(
    {"type": "job.failed", "timestamp": "2026-11-29T12:00:01.512Z", "data": JOB}
).encode()


def signed(secret=SECRET, body=BODY):
    return webhook.headers(webhook.secret(secret), "msg_1", NOW, body)


def test_one_that_is_good_is_read():
    opened = open_webhook(BODY, signed(), SECRET, now=NOW)
    assert (opened.id, opened.type, opened.job.state) == ("msg_1", "job.failed", "failed")
    assert opened.timestamp == datetime(2026, 11, 29, 12, 0, 1, 512_000, UTC)


def test_while_a_secret_is_changed_one_of_several_signatures_is_enough():
    both = " ".join(signed(each)["webhook-signature"] for each in (OTHER, SECRET))
    headers = signed() | {"webhook-signature": both}
    assert open_webhook(BODY, headers, SECRET, now=NOW).job.id == "a"


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (BODY.replace(b"failed", b"cancelled"), {}),
        (BODY, {"webhook-id": "msg_2"}),
        (BODY, {"webhook-timestamp": str(NOW + 1)}),
        (BODY, {"webhook-timestamp": "now"}),
        (BODY, {"webhook-signature": ""}),
        (BODY, {"webhook-signature": "v1,\u00e4"}),
        (BODY, signed(OTHER)),
    ],
)
def test_one_that_was_changed_is_refused(body, changes):
    with pytest.raises(InvalidSignature):
        open_webhook(body, signed() | changes, SECRET, now=NOW)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_one_without_a_header_is_refused(missing):
    headers = {name: value for name, value in signed().items() if name != missing}
    with pytest.raises(InvalidSignature):
        open_webhook(BODY, headers, SECRET, now=NOW)


@pytest.mark.parametrize("off", [-301, 301])
def test_one_that_is_old_is_refused(off):
    with pytest.raises(InvalidSignature, match="old"):
        open_webhook(BODY, signed(), SECRET, now=NOW + off)


def test_the_callback_of_a_real_job_can_be_opened():
    with (
        running(EMBER_URI_NETWORKS="127.0.0.0/8") as server,
        receiving(200) as receiver,
        Client(server.url) as ember,
    ):
        wish = {"callback": receiver.url, "callback_secret": SECRET, "callback_image": "base64"}
        job = ember.submit(HOPPER, COLLINS, **wish)
        eventually(lambda: receiver.calls, 60)
        headers, body = receiver.calls[0]
        told = open_webhook(body, headers, SECRET)
        assert (told.job.id, told.type) == (job.id, "job.succeeded")
        assert told.job.items[0].image == ember.result(job)
