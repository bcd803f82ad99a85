"""`data:` URIs by themselves."""

from __future__ import annotations

import base64
import time
import tracemalloc
from urllib.parse import quote

import pytest

from function.http.uris import Uris
from function.problems import Problem
from function.storage.storage import Storage

DATA = bytes(range(256))
LIMIT = 64 * 1024**2
CODED = base64.b64encode(DATA).decode()


async def fetch(uri, field):
    storage = Storage()
    try:
        return await Uris(storage, LIMIT, ("*",))(uri, field, lambda _: None)
    finally:
        await storage.close()


@pytest.mark.parametrize(
    ("uri", "media_type"),
    [
        (f"data:image/png;base64,{CODED}", "image/png"),
        (f"DATA:Image/PNG;Base64,{CODED}", "image/png"),
        (f"data:image/png;name=a.png;base64,{CODED}", "image/png"),
        (f"data:;base64,{CODED}", None),
        (f"data:image/png;base64,{CODED.rstrip('=')}", "image/png"),
        (f"data:image/png;base64,{quote(CODED, safe='')}", "image/png"),
        (f"data:image/png,{quote(DATA)}", "image/png"),
        (f"data:,{quote(DATA)}", None),
    ],
)
async def test_a_data_uri_gives_its_bytes(uri, media_type):
    upload = await fetch(uri, "image")
    assert (upload.data, upload.field, upload.media_type) == (DATA, "image", media_type)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "data",
        "photo.jpg",
        "/photo.jpg",
        ":x",
        "data:image/png;base64",
        "data:image/png;base64,not base64",
        "data:image/png;base64,AAAAA",
        "data:image/png;base64,AA=A",
        "data:image/png;base64,-_-_",
        "data:image/png;base64,ü",
        "data:image/png,ü",
        "dätä:,x",
    ],
)
async def test_what_is_no_data_uri_is_a_bad_value(uri):
    with pytest.raises(Problem) as raised:
        await fetch(uri, "image")
    assert (raised.value.code, raised.value.extra["field"]) == ("bad_value", "image")


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("s3+x://b", "unsupported_uri"),
        ("ftp://h/p", "unsupported_uri"),
        ("javascript:x", "unsupported_uri"),
        ("http://127.0.0.1/p", "object_forbidden"),
        ("file:///etc/passwd", "object_forbidden"),
    ],
)
async def test_what_requests_may_not_name_is_refused(uri, code):
    with pytest.raises(Problem) as raised:
        await fetch(uri, "source")
    assert (raised.value.code, raised.value.extra["field"]) == (code, "source")


@pytest.mark.parametrize(
    ("buckets", "uri"),
    [
        (("photos",), "gs://other/a.jpg"),
        (("photos",), "GS://other/a.jpg"),
        (("photos/people/",), "gs://photos/pets/a.jpg"),
        (("photos/people/",), "gs://photos/a/people/b.jpg"),
        (("photos/people/",), "gs://photos/people%2f../../a.jpg?x=1"),
        (("photos",), "gs://photos.other/a.jpg"),
        ((), "gs://photos/a.jpg"),
    ],
)
async def test_buckets_that_requests_may_not_name_are_refused_without_asking_the_store(
    buckets, uri
):
    with pytest.raises(Problem) as raised:
        await Uris(Storage(), LIMIT, buckets)(uri, "source", lambda _: None)
    assert raised.value.code in {"object_forbidden", "bad_value"}


LONG = [
    ("data:image/png;base64,", "%41"),
    ("data:image/png;base64,", "%2B"),
    ("data:image/png,", "%41"),
    ("data:image/png", ";a"),
    ("data:,", "%"),
    ("data:", "a"),
    ("", "a"),
]


async def refused(uri):
    with pytest.raises(Problem) as raised:
        await fetch(uri, "image")
    assert (raised.value.code, raised.value.extra["field"]) == ("bad_value", "image")
    return raised.value


@pytest.mark.parametrize(("head", "unit"), LONG)
async def test_a_long_uri_takes_little_more_memory_than_itself(head, unit):
    uri = head + unit * (8 * 1024**2 // len(unit)) + "!"
    tracemalloc.start()
    try:
        await refused(uri)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(uri)


@pytest.mark.parametrize(("head", "unit"), LONG)
async def test_a_long_uri_takes_time_in_proportion_to_its_length(head, unit):
    async def best_of_three(size):
        times, uri = [], head + unit * (size // len(unit)) + "!"
        for _ in range(3):
            began = time.perf_counter()
            await refused(uri)
            times.append(time.perf_counter() - began)
        return min(times)

    # a floor, as what takes no time at all has no ratio; quadratic would be 64 times
    assert await best_of_three(16 * 1024**2) < 24 * await best_of_three(2 * 1024**2) + 0.05


async def test_base64_of_any_length_may_have_its_letters_escaped():
    data = bytes(range(256)) * 8192
    uri = "data:image/png;base64," + quote(base64.b64encode(data).decode(), safe="")
    assert (await fetch(uri, "image")).data == data


async def test_a_long_percent_encoded_uri_is_refused_with_the_advice_to_use_base64():
    problem = await refused("data:image/png," + "%41" * 400_000)
    assert "base64" in problem.extra["hint"]
    assert problem.extra["limit"] == 1024**2
