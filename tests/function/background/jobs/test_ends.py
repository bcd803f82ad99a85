"""How jobs end: results where they belong, callbacks that can be trusted, nothing left behind."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import random
import time
from dataclasses import replace

import numpy as np
import pytest

from function import tasks
from function.admission.account import Receipt
from function.background.jobs import callback
from function.background.jobs.files import FileBudget, JobFilesError
from function.background.jobs.files import InMemoryJobFiles as Shelf
from function.background.jobs.job import JobSpec, JobState, key_of
from function.background.jobs.redis_store import RedisJobStore
from function.background.jobs.runner import JobRunner, RunnerSettings
from function.background.jobs.store import InMemoryJobStore, JobStoreError
from function.problems import Problem
from function.request_context import Lane
from function.requests import SwapResult
from function.storage.storage import Storage
from tests.function.live import COLLINS, HOPPER, NOBODY, SOURCE, TARGET, Live
from tests.function.raw import eventually

from .conftest import HERE, finished, new_id, pixels, put, receiving

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes....").decode()
HOOK = ("callback_secret", SECRET)


@pytest.fixture(scope="module")
def bucket(cloud):
    with Live(output_buckets=("swapped/jobs/",), job_photos="gs://photos/jobs") as server:
        yield server


class TestOutputs:
    def test_go_to_the_bucket_and_nothing_is_kept_here(self, bucket, cloud):
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

    def test_never_replace_what_is_there(self, bucket, cloud):
        cloud.swapped.blob("jobs/taken.jpg").upload_from_string(b"precious")
        name = new_id()
        put(bucket, name, SOURCE, TARGET, ("output", "gs://swapped/jobs/taken.jpg"))
        told = finished(bucket, name)
        assert told["items"][0]["problem"]["code"] == "output_taken"
        assert cloud.output("jobs/taken.jpg").download_as_bytes() == b"precious"

    def test_go_only_where_the_operator_lets_them(self, bucket):
        answer = put(bucket, new_id(), SOURCE, TARGET, ("output", "gs://swapped/other/a.jpg"))
        assert answer.problem("object_forbidden", 422)["setting"] == "EMBER_OUTPUT_BUCKETS"
        name = new_id()
        put(bucket, name, SOURCE, TARGET, ("output", "https://127.0.0.1/a.jpg"))
        assert finished(bucket, name)["items"][0]["problem"]["code"] == "object_forbidden"

    def test_without_a_place_are_kept_where_photos_are(self, bucket, cloud):
        name = new_id()
        put(bucket, name, SOURCE, TARGET)
        uri = finished(bucket, name)["items"][0]["result"]["uri"]
        assert bucket.get(uri).image.size == (512, 512)
        eventually(lambda: len(list(cloud.photos.list_blobs(prefix="jobs/"))) == 1)
        bucket.send("DELETE", f"/v1/jobs/{name}")
        assert not list(cloud.photos.list_blobs(prefix="jobs/"))


class TestCallbacks:
    def test_tell_of_the_end_with_a_good_signature_and_no_photo(self, live):
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

    def test_have_the_photo_for_who_asks_for_it(self, live):
        with receiving(200) as receiver:
            wish = ("callback_image", "base64")
            put(live, new_id(), SOURCE, TARGET, ("callback", receiver.url), HOOK, wish)
            eventually(lambda: receiver.calls)
            image = receiver.told[0]["data"]["items"][0]["image"]
            assert pixels(base64.b64decode(image["base64"])).shape == pixels(COLLINS).shape

    def test_do_not_tell_where_the_photos_are(self, live):
        with receiving(200) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: receiver.calls)
            headers, body = receiver.calls[0]
            book = live.server.jobs.store
            at = live.run(book.get(key_of(None, name))).spec.at
            assert len(at) == 32
            told = "\n".join(headers.values()) + body.decode()
            assert at not in told
            assert at not in live.get(f"/v1/jobs/{name}").body.decode()

    def test_are_tried_again_under_the_same_id(self, live, monkeypatch):
        monkeypatch.setattr(callback, "_PAUSES_S", (0.1, 0.1, 0.1))
        with receiving(500, 302, 200) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: finished(live, name)["callback"]["state"] == "delivered")
            assert len({headers["webhook-id"] for headers, _ in receiver.calls}) == 1
            assert len(receiver.calls) == 3

    @pytest.mark.parametrize("status", [410, 500])
    def test_are_given_up_in_the_end(self, live, monkeypatch, status):
        monkeypatch.setattr(callback, "_PAUSES_S", (0.1,))
        with receiving(status) as receiver:
            name = new_id()
            put(live, name, SOURCE, TARGET, ("callback", receiver.url), HOOK)
            eventually(lambda: finished(live, name)["callback"]["state"] == "failed")
            told = finished(live, name)
            assert told["callback"]["note"] == f"it answers {status}"
            assert told["state"] == "succeeded"
            assert len(receiver.calls) == (1 if status == 410 else 2)

    def test_lead_to_public_addresses_only(self):
        with receiving(200) as receiver, Live() as server:
            for uri in (receiver.url, receiver.url.replace("http:", "https:")):
                name = new_id()
                put(server, name, SOURCE, ("target", NOBODY), ("callback", uri), HOOK)
                eventually(
                    lambda name=name: finished(server, name)["callback"]["state"] == "failed"
                )
            assert receiver.calls == []

    def test_need_an_address_and_a_secret(self, live):
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

    def test_may_be_signed_by_the_operator(self):
        with receiving(200) as receiver, Live(uri_networks=HERE, webhook_secret=SECRET) as server:
            put(server, new_id(), SOURCE, ("target", NOBODY), ("callback", receiver.url))
            eventually(lambda: receiver.calls)
            assert receiver.told[0]["type"] == "job.failed"


def test_pauses_grow_with_jitter_and_come_to_an_end():
    rng = random.Random(1)
    pauses = [callback.pause_s(tries, rng) for tries in range(1, 9)]
    assert pauses[-1] is None
    assert pauses[:-1] == sorted(pauses[:-1])
    assert 5 <= pauses[0] < pauses[1] < 60
    assert callback.pause_s(1, rng) != callback.pause_s(1, rng)


class TestTheWorks:
    """The works alone, with a swap that the test makes."""

    @pytest.fixture
    async def works(self):
        self.orders, self.refunds, self.failures = [], [], []
        works = self.made()
        task = asyncio.create_task(works.run())
        yield works
        task.cancel()
        await works.close(1)

    def made(self, book=None, shelf=None, lease_s=0.2):
        async def swap(order, watch=None):
            self.orders.append(order)
            if self.failures:
                raise self.failures.pop(0)
            return RESULT

        return JobRunner(
            book or InMemoryJobStore(),
            shelf or Shelf(FileBudget(10**6)),
            storage=Storage(),
            swap=swap,
            refund=lambda *each: self.refunds.append(each),
            lanes=lambda: list(Lane),
            settings=RunnerSettings(lease_s, 3600, 2),
        )

    async def job(self, works, **changes):
        prices, receipt = (3,), Receipt(2, 1, 0, 0)
        spec = JobSpec("a", "ann", "d", "at", Lane.BULK, 1.0, prices=prices, receipt=receipt)
        spec = replace(spec, **changes)
        for name in spec.inputs:
            await works.files.put(name, b"photo", 60)
        await works.store.open(spec, 10, 60)
        works.wake()
        return spec

    async def test_they_end_though_something_comes_to_do_meanwhile(self):
        for turns in range(8):  # of the event loop, between what wakes them and their end
            works = self.made()
            running = asyncio.create_task(works.run())
            await asyncio.sleep(0.01)
            works.wake()
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait({running}, timeout=5)
            assert running.cancelled()

    async def ended(self, works, spec):
        for _ in range(600):
            job = await works.store.get(spec.key)
            if not job.state.open:
                return job
            await asyncio.sleep(0.02)
        raise AssertionError("it never ended")

    async def test_what_fails_in_passing_is_tried_again(self, works):
        self.failures = [Problem("storage_unavailable", "not now")]
        job = await self.ended(works, await self.job(works))
        assert (job.state, len(self.orders)) == (JobState.SUCCEEDED, 2)
        assert self.refunds == []

    async def test_the_order_has_all_that_the_request_said(self, works):
        options = {"faces": "index:1", "format": "webp", "quality": 7, "enhance": 3, "weight": 60}
        await self.ended(works, await self.job(works, sources=2, like=True, options=options))
        (order,) = self.orders
        assert [each.field for each in order.sources] == ["source", "source"]
        assert (order.target.data, order.like.data) == (b"photo", b"photo")
        assert (order.format, order.quality, order.faces.named) == ("webp", 7, 1)
        assert (order.options.enhance, order.options.weight) == (3, 0.6)

    async def test_what_was_done_is_not_done_again(self, works):
        self.failures = [Problem("storage_unavailable", "not now")]
        spec = await self.job(works, targets=3, prices=(1, 1, 1), receipt=Receipt(3, 0, 0, 0))
        job = await self.ended(works, spec)
        assert job.state is JobState.SUCCEEDED
        assert len(self.orders) == 4  # three, and the one that failed

    async def test_what_ended_every_worker_is_given_up_and_paid_back_unless_it_was_begun(self):
        self.orders, self.refunds, self.failures = [], [], []
        clock = [10**6]
        works = self.made(book=InMemoryJobStore(lambda: clock[0]))
        spec = await self.job(works)
        for _ in range(5):
            assert await works.store.take(list(Lane), 1)
            clock[0] += 2000
        task = asyncio.create_task(works.run())
        job = await self.ended(works, spec)
        assert (job.state, self.orders) == (JobState.FAILED, [])
        assert job.items[0].problem["code"] == "internal"
        assert self.refunds == [("ann", Receipt(2, 1, 0, 0))]
        task.cancel()
        await works.close(1)

    async def test_photos_that_came_with_it_go_with_its_end_and_results_when_it_is_over(self):
        self.orders, self.refunds, self.failures = [], [], []
        clock = [10**6]
        works = self.made(book=InMemoryJobStore(lambda: clock[0]))
        spec = await self.job(works)
        task = asyncio.create_task(works.run())
        await self.ended(works, spec)
        await asyncio.sleep(0.05)
        assert works.files.held == len(RESULT.image)
        task.cancel()
        clock[0] += 3600 * 1000 + 1
        task = asyncio.create_task(works.run())
        for _ in range(100):
            if await works.store.get(spec.key) is None:
                break
            await asyncio.sleep(0.02)
        assert await works.store.get(spec.key) is None
        assert works.files.held == 0
        task.cancel()
        await works.close(1)

    @pytest.mark.parametrize("where", ["memory", "redis"])
    @pytest.mark.parametrize("outputs", [(), ("gs://swapped/jobs/late.jpg",)])
    async def test_a_book_that_is_silent_for_longer_than_a_lease_has_the_whole_end(
        self, cloud, redis, where, outputs
    ):
        """What was done is told with the end, though the target could not be marked."""
        self.orders, self.refunds, self.failures = [], [], []
        book = SilentMemory() if where == "memory" else SilentShared(redis.url, 5.0)
        works = self.made(book=book, lease_s=0.3)
        task = asyncio.create_task(works.run())
        job = await self.ended(works, await self.job(works, outputs=outputs))
        assert book.failed
        assert job.state is JobState.SUCCEEDED
        assert [item.state for item in job.items] == [JobState.SUCCEEDED]
        assert job.items[0].result["media_type"] == "image/jpeg"
        await tasks.end(task)
        await works.close(10)
        await works._storage.close()

    async def test_a_photo_that_cannot_be_deleted_keeps_no_other_job(self, caplog):
        self.orders, self.refunds, self.failures = [], [], []
        clock = [10**6]
        works = self.made(book=InMemoryJobStore(lambda: clock[0]), shelf=Sticky(FileBudget(10**6)))
        works._lanes = list
        first, second = await self.job(works), await self.job(works, id="b", at="other")
        works.files.stuck = set(first.inputs)
        clock[0] += 61_000
        for job in (await works.end(second.key), await works.store.end(first.key, 1)):
            assert job
        clock[0] += 3600 * 1000 + 1
        await works._sweep()
        assert await works.store.get(second.key) is None
        assert await works.store.get(first.key) is not None
        assert "cannot be deleted" in caplog.text
        works.files.stuck = set()
        await works._sweep()
        assert await works.store.get(first.key) is None
        await works.close(1)

    async def test_a_job_that_is_over_before_it_has_begun_is_cancelled_and_paid_back(self):
        self.orders, self.refunds, self.failures = [], [], []
        clock = [10**6]
        works = self.made(book=InMemoryJobStore(lambda: clock[0]))
        works._lanes = list
        spec = await self.job(works)
        clock[0] += 61_000
        task = asyncio.create_task(works.run())
        assert (await self.ended(works, spec)).state is JobState.CANCELLED
        assert self.refunds == [("ann", Receipt(2, 1, 0, 0))]
        assert works.files.held == 0
        task.cancel()
        await works.close(1)


class Silent:
    """A book that cannot be told how far a target is, once that is done."""

    failed = 0

    async def mark(self, key, token, place, item):
        if item.state is JobState.SUCCEEDED:
            self.failed += 1
            raise JobStoreError("silent")
        return await super().mark(key, token, place, item)


class SilentMemory(Silent, InMemoryJobStore):
    """In this process."""


class SilentShared(Silent, RedisJobStore):
    """In Redis."""


class Sticky(Shelf):
    """A shelf of which some photos cannot be taken."""

    stuck = frozenset()

    async def drop(self, names):
        if self.stuck.intersection(names):
            raise JobFilesError("it sticks")
        await super().drop(names)


RESULT = SwapResult(b"result", "image/jpeg", (4, 3), faces=(1,), source=None, warnings=())


def test_what_became_of_jobs_is_counted(live):
    name = new_id()
    put(live, name, SOURCE, ("target", NOBODY))
    finished(live, name)
    lines = live.get("/metrics").body.decode().splitlines()
    assert any(line.startswith('ember_jobs_total{state="failed"}') for line in lines)
    assert any(line.startswith('ember_jobs_open{state="queued"} ') for line in lines)


def test_a_receipt_gives_back_granted_tokens_first():
    receipt = Receipt(allowed=5, granted=2, ends=7, hour=9)
    assert receipt.part(1) == Receipt(0, 1, 7, 9)
    assert receipt.part(4) == Receipt(2, 2, 7, 9)
    assert receipt.part(7) == receipt
