"""How jobs end: results where they belong, callbacks that can be trusted, nothing left behind."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import time

import numpy as np
import pytest

from function.background.jobs import webhook
from function.background.jobs.job import key_of
from tests.function.live import COLLINS, HOPPER, NOBODY, SOURCE, TARGET, Live
from tests.function.raw import eventually

from .conftest import HERE, finished, new_id, pixels, put, receiving

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes....").decode()
HOOK = ("callback_secret", SECRET)


@pytest.fixture(scope="module")
def bucket(cloud):
    with Live(
        output_buckets=("swapped/jobs/",), job_photos="gs://photos/jobs", watermark="off"
    ) as server:
        yield server


class TestOutputs:
    def test_outputs_go_to_the_bucket_and_nothing_is_kept_here(self, bucket, cloud):
        name = new_id()
        outputs = ("output", "gs://swapped/jobs/a.webp gs://swapped/jobs/b.webp")
        put(bucket, name, SOURCE, TARGET, ("target", HOPPER), ("format", "webp"), outputs)
        told = finished(bucket, name)
        assert told["state"] == "succeeded", told
        for item, letter, target in zip(told["items"], "ab", (COLLINS, HOPPER), strict=True):
            assert item["result"]["uri"] == f"gs://swapped/jobs/{letter}.webp"
            blob = cloud.output(f"jobs/{letter}.webp")
            assert blob.content_type == "image/webp"
            assert set(blob.metadata) == {"ember-job"}
            swapped = bucket.form("/v1/swap", SOURCE, ("target", target), ("format", "webp"))
            assert np.array_equal(pixels(blob.download_as_bytes()), pixels(swapped.body))
        eventually(lambda: not list(cloud.photos.list_blobs(prefix="jobs/")))

    def test_outputs_never_replace_what_is_there(self, bucket, cloud):
        cloud.swapped.blob("jobs/taken.jpg").upload_from_string(b"precious")
        name = new_id()
        put(bucket, name, SOURCE, TARGET, ("output", "gs://swapped/jobs/taken.jpg"))
        told = finished(bucket, name)
        assert told["items"][0]["problem"]["code"] == "output_taken"
        assert cloud.output("jobs/taken.jpg").download_as_bytes() == b"precious"

    def test_outputs_go_only_where_the_operator_allows_it(self, bucket):
        answer = put(bucket, new_id(), SOURCE, TARGET, ("output", "gs://swapped/other/a.jpg"))
        assert answer.problem("object_forbidden", 422)["setting"] == "EMBER_OUTPUT_BUCKETS"
        name = new_id()
        put(bucket, name, SOURCE, TARGET, ("output", "https://127.0.0.1/a.jpg"))
        assert finished(bucket, name)["items"][0]["problem"]["code"] == "object_forbidden"

    def test_results_without_an_output_are_kept_where_photos_are(self, bucket, cloud):
        name = new_id()
        put(bucket, name, SOURCE, TARGET)
        uri = finished(bucket, name)["items"][0]["result"]["uri"]
        assert bucket.get(uri).image.size == (512, 512)
        eventually(lambda: len(list(cloud.photos.list_blobs(prefix="jobs/"))) == 1)
        bucket.send("DELETE", f"/v1/jobs/{name}")
        assert not list(cloud.photos.list_blobs(prefix="jobs/"))


class TestCallbacks:
    def test_a_callback_says_how_the_job_ended_with_a_good_signature_and_no_photo(self, live):
        with receiving(204) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: receiver.calls)
            headers, body = receiver.calls[0]
            (event,) = receiver.told
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            assert headers["webhook-signature"] == f"v1,{digest}"
            assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
            assert event["type"] == "job.succeeded"
            assert event["data"]["id"] == name
            assert "image" not in event["data"]["items"][0]
            assert SECRET.encode() not in body
            eventually(lambda: finished(live, name)["callback"]["state"] == "delivered")
            assert len(receiver.calls) == 1

    def test_a_callback_has_the_photo_where_the_request_asks_for_it(self, live):
        with receiving(200) as receiver:
            wish = ("callback_image", "base64")
            put(live, new_id(), SOURCE, TARGET, ("callback", receiver.url), HOOK, wish)
            eventually(lambda: receiver.calls)
            image = receiver.told[0]["data"]["items"][0]["image"]
            assert pixels(base64.b64decode(image["base64"])).shape == pixels(COLLINS).shape

    def test_a_callback_does_not_say_where_the_photos_are(self, live):
        with receiving(200) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: receiver.calls)
            headers, body = receiver.calls[0]
            store = live.server.jobs.store
            at = live.run(store.get(key_of(None, name))).spec.at
            assert len(at) == 32
            told = "\n".join(headers.values()) + body.decode()
            assert at not in told
            assert at not in live.get(f"/v1/jobs/{name}").body.decode()

    def test_a_callback_is_tried_again_under_the_same_id(self, live, monkeypatch):
        monkeypatch.setattr(webhook, "_PAUSES_S", (0.1, 0.1, 0.1))
        with receiving(500, 302, 200) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: finished(live, name)["callback"]["state"] == "delivered")
            assert len({headers["webhook-id"] for headers, _ in receiver.calls}) == 1
            assert len(receiver.calls) == 3

    @pytest.mark.parametrize("status", [410, 500])
    def test_a_callback_is_given_up_in_the_end(self, live, monkeypatch, status):
        monkeypatch.setattr(webhook, "_PAUSES_S", (0.1,))
        with receiving(status) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: finished(live, name)["callback"]["state"] == "failed")
            told = finished(live, name)
            assert told["callback"]["note"] == f"it answers {status}"
            assert told["state"] == "succeeded"
            assert len(receiver.calls) == (1 if status == 410 else 2)

    def test_callbacks_go_to_public_addresses_only(self):
        with receiving(200) as receiver, Live() as server:
            for uri in (receiver.url, receiver.url.replace("http:", "https:")):
                name = new_id()
                put(server, name, SOURCE, ("target", NOBODY), ("callback", uri), HOOK)
                eventually(
                    lambda name=name: finished(server, name)["callback"]["state"] == "failed"
                )
            assert receiver.calls == []

    def test_a_callback_needs_an_address_and_a_secret(self, live):
        hook = ("callback", "https://example.org/hook")
        for parts, field in [
            ((hook,), "callback_secret"),
            ((hook, ("callback_secret", "secret")), "callback_secret"),
            ((hook, ("callback_secret", "whsec_c2hvcnQ=")), "callback_secret"),
            ((("callback", "gs://b/a"), HOOK), "callback"),
            ((("callback", "https://"), HOOK), "callback"),
            ((("callback", "https://["), HOOK), "callback"),
            ((("callback", "https://example.org:99999/"), HOOK), "callback"),
            ((("callback", "https://me:secret@example.org/"), HOOK), "callback"),
            ((HOOK,), "callback_secret"),
            ((hook, HOOK, TARGET, ("callback_image", "base64")), "callback_image"),
        ]:
            answer = put(live, new_id(), SOURCE, TARGET, *parts)
            assert answer.problem(answer.json["code"], 422)["field"] == field

    def test_callbacks_may_be_signed_by_the_operator(self):
        with receiving(200) as receiver, Live(uri_networks=HERE, webhook_secret=SECRET) as server:
            put(server, new_id(), SOURCE, ("target", NOBODY), ("callback", receiver.url))
            eventually(lambda: receiver.calls)
            assert receiver.told[0]["type"] == "job.failed"


def test_pauses_between_callbacks_grow_with_jitter_and_come_to_an_end():
    rng = random.Random(1)
    pauses = [webhook.pause_s(tries, rng) for tries in range(1, 9)]
    assert pauses[-1] is None
    assert pauses[:-1] == sorted(pauses[:-1])
    assert 5 <= pauses[0] < pauses[1] < 60
    assert webhook.pause_s(1, rng) != webhook.pause_s(1, rng)


def test_what_became_of_jobs_is_counted(live):
    name = new_id()
    put(live, name, SOURCE, ("target", NOBODY))
    finished(live, name)
    lines = live.get("/metrics").body.decode().splitlines()
    assert any(line.startswith('ember_jobs_total{state="failed"}') for line in lines)
    assert any(line.startswith('ember_jobs_open{state="queued"} ') for line in lines)
