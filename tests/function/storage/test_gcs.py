"""`gs://` against a real server that speaks Google Cloud Storage's API."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from function.problems import Problem
from tests.warmup.objects.gcs import fake_gcs
from tests.warmup.objects.hostile import hostile
from warmup.objects import gs_uri
from warmup.objects.errors import ChangedError

from .conftest import refused

DATA = bytes(range(256)) * 4000
LIMIT = 2_000_000


@pytest.fixture(scope="module")
def bucket():
    with fake_gcs("photos") as bucket:
        yield bucket


@pytest.fixture
def here(storage, bucket):
    return storage(timeout_s=5)


@pytest.mark.parametrize("name", ["a/b c+ü%.jpg", "%41.jpg", "what?#1.jpg", "a//b.jpg"])
async def test_what_was_written_is_read_with_its_type_and_metadata(here, bucket, name):
    uri = gs_uri.uri("photos", name)
    generation = await here.write(
        uri, DATA, media_type="image/webp", metadata={"ember-of": "ü", "x": "1"}
    )
    found = await here.read(uri, LIMIT)
    assert found.data == DATA
    assert found.facts.media_type == "image/webp"
    assert found.facts.metadata == {"ember-of": "ü", "x": "1"}
    assert found.facts.generation == generation
    assert bucket.get_blob(name).download_as_bytes() == DATA


async def test_what_must_be_new_never_replaces(here):
    uri = "gs://photos/once.jpg"
    await here.write(uri, b"1", media_type="image/png", if_generation_match=0)
    with pytest.raises(ChangedError):
        await here.write(uri, b"2", media_type="image/png", if_generation_match=0)
    assert (await here.read(uri, LIMIT)).data == b"1"


async def test_what_is_too_large_for_one_request_comes_in_several(here):
    uri, data = "gs://photos/ten-mib.jpg", bytes(10 * 1024**2)
    await here.write(uri, data, media_type="image/png", if_generation_match=0)
    assert (await here.read(uri, 20 * 1024**2)).data == data


async def test_the_first_of_several_requests_has_the_precondition(storage, monkeypatch):
    """The server of the other tests looks at preconditions of single requests only."""
    asked = []

    async def refuse(request):
        if request.method == "POST":  # the library asks about the bucket as well
            asked.append(dict(request.query))
        return web.json_response({"error": {"code": 412, "message": "no"}}, status=412)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{host}:{port}")
    place = storage(timeout_s=5)
    try:
        with pytest.raises(ChangedError):
            await place.write(
                "gs://photos/a.jpg",
                bytes(10 * 1024**2),
                media_type="image/png",
                if_generation_match=0,
            )
    finally:
        await place.close()
        with suppress(TimeoutError):  # else the loop may end before its connections have
            async with asyncio.timeout(5):
                while runner.server.connections:
                    await asyncio.sleep(0.01)
        await runner.cleanup()
        await asyncio.sleep(0.01)
    assert asked == [{"uploadType": "resumable", "ifGenerationMatch": "0"}]


async def test_a_generation_has_to_be_the_one_that_is_there(here):
    uri = "gs://photos/twice.jpg"
    first = await here.write(uri, b"1", media_type="image/png")
    second = await here.write(uri, b"2", media_type="image/png", if_generation_match=first)
    assert second > first
    with pytest.raises(ChangedError):
        await here.write(uri, b"3", media_type="image/png", if_generation_match=first)
    assert (await here.read(uri, LIMIT)).data == b"2"


async def test_a_generation_that_was_replaced_is_not_there(here):
    first = await here.write("gs://photos/old.jpg", b"1", media_type="image/png")
    await here.write("gs://photos/old.jpg", b"2", media_type="image/png")
    async with refused("object_not_found"):
        await here.read(f"gs://photos/old.jpg#{first}", LIMIT)


async def test_what_is_not_there_is_not_found(here):
    assert await here.stat("gs://photos/nothing.jpg") is None
    async with refused("object_not_found"):
        await here.read("gs://photos/nothing.jpg", LIMIT)
    async with refused("object_not_found"):
        await here.read("gs://no-such-bucket/nothing.jpg", LIMIT)


async def test_a_large_object_is_refused_before_it_comes(here):
    await here.write("gs://photos/large.jpg", DATA, media_type="image/png")
    taken = []
    async with refused("object_too_large") as found:
        await here.read("gs://photos/large.jpg", 1000, taken.append)
    assert found.problem.extra == {"limit": 1000, "value": len(DATA)}
    assert not taken


async def test_what_is_stored_compressed_may_not_unpack_beyond_the_limit(here, bucket):
    blob = bucket.blob("bomb.jpg")
    blob.content_encoding = "gzip"
    blob.upload_from_string(gzip.compress(bytes(3_000_000)), content_type="image/jpeg")
    assert blob.size < 10_000
    with pytest.raises(Problem) as raised:
        await here.read("gs://photos/bomb.jpg", LIMIT)
    assert raised.value.code == "object_too_large"


@pytest.mark.parametrize(
    "uri",
    ["gs://", "gs://photos", "gs:///a", "gs://photos/a?x=1", "gs://photos/a#b", "gs://[x/a",
     "gs://photos/" + "a" * 1025, "gs://photos/%ff"],
)  # fmt: skip
async def test_what_is_malformed_is_a_bad_value(here, uri):
    async with refused("bad_value"):
        await here.read(uri, LIMIT)


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "object_forbidden"), (403, "object_forbidden"), (503, "storage_unavailable")],
)
async def test_refusals_and_failures_of_the_store_become_problems(
    storage, monkeypatch, status, code
):
    with hostile() as site:
        site.behaviours["/storage/v1/b/photos/o/a.jpg"] = lambda request: request.head(status, 0)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", site.url.rstrip("/"))
        async with refused(code) as found:
            await storage(timeout_s=2).read("gs://photos/a.jpg", LIMIT)
    assert urlsplit(site.url).netloc not in found.problem.detail


async def test_a_store_that_is_not_there_is_unavailable(storage, monkeypatch, free_port):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{free_port}")
    async with refused("storage_unavailable") as found:
        await storage(timeout_s=2).read("gs://photos/a.jpg", LIMIT)
    assert "Retry-After" in found.problem.headers
