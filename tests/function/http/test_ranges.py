"""Parts of files: the pure decision, and over HTTP for results and the files of the page."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.http import ranges
from function.problems import Problem
from tests.function.live import FORM, SOURCE, TARGET, multipart
from tests.function.raw import eventually

TAG = '"t"'


def span(range_, size=10, **more):
    """First and last byte; None for all."""
    part = ranges.wanted({"Range": range_} | more, size, TAG)
    return part and (part.first, part.last)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("bytes=0-3", (0, 3)),
        ("bytes=4-", (4, 9)),
        ("bytes=-3", (7, 9)),
        ("bytes=-99", (0, 9)),
        ("bytes=9-99", (9, 9)),
        ("BYTES=0-0", (0, 0)),
        ("bytes= 1-2 ", (1, 2)),
        ("bytes=3-2", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("bytes=a-b", None),
        ("bytes=--1", None),
        ("items=0-1", None),
        ("", None),
        ("bytes=²-3", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_a_range_header_names_one_part(sent, meant):
    assert span(sent) == meant


@pytest.mark.parametrize(("sent", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0)])
def test_a_part_that_the_file_does_not_have_is_416(sent, size):
    with pytest.raises(Problem) as raised:
        span(sent, size)
    assert raised.value.kind.status == 416
    assert raised.value.headers["Content-Range"] == f"bytes */{size}"


def test_another_content_than_the_one_that_was_begun_is_sent_whole():
    assert span("bytes=1-2", **{"If-Range": TAG}) == (1, 2)
    for other in ('"u"', 'W/"t"', "Sat, 29 Oct 1994 19:43:31 GMT", "t", ""):
        assert span("bytes=1-2", **{"If-Range": other}) is None


@given(st.text(max_size=40), st.integers(0, 50))
def test_no_range_header_breaks_an_answer(sent, size):
    for each in (sent, f"bytes={sent}"):
        with contextlib.suppress(Problem):
            found = span(each, size)
            assert found is None or 0 <= found[0] <= found[1] < size


@given(st.lists(st.binary(max_size=9), max_size=6), st.data())
async def test_pieces_are_cut_as_the_whole_would_be(pieces, data):
    whole = b"".join(pieces)
    if not whole:
        return
    first = data.draw(st.integers(0, len(whole) - 1))
    last = data.draw(st.integers(first, len(whole) - 1))

    async def one_by_one():
        for piece in pieces:
            yield piece

    part = ranges.Part(first, last, len(whole))
    got = [piece async for piece in ranges.cut(one_by_one(), part)]
    assert b"".join(got) == whole[first : last + 1]


@pytest.fixture(scope="module")
def result(live):
    """The address of a result of a job."""
    address = f"/v1/jobs/{uuid.uuid4()}"
    live.send("PUT", address, multipart(SOURCE, TARGET), FORM)
    eventually(lambda: live.get(address).json["state"] == "succeeded", 60)
    return f"{address}/results/0"


@pytest.mark.parametrize("of", ["result", "page", "sample"])
def test_a_part_is_206_with_just_that(live, result, of):
    path = {"result": result, "page": "/page/app.js", "sample": "/samples/hopper.jpg"}[of]
    whole = live.get(path)
    size = len(whole.body)
    assert (whole.status, whole.headers["Accept-Ranges"]) == (200, "bytes")
    for sent, first, last in (("0-99", 0, 99), ("-7", size - 7, size - 1), ("50-", 50, size - 1)):
        answer = live.get(path, Range=f"bytes={sent}")
        assert answer.status == 206
        assert answer.body == whole.body[first : last + 1]
        assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{size}"
        assert answer.headers["Content-Length"] == str(last - first + 1)
        assert answer.headers["ETag"] == whole.headers["ETag"]
        assert answer.media_type == whole.media_type
    answer = live.get(path, Range=f"bytes={size}-")
    answer.problem("range_not_satisfiable", 416)
    assert answer.headers["Content-Range"] == f"bytes */{size}"
    same = {"Range": "bytes=1-2", "If-Range": whole.headers["ETag"]}
    assert live.get(path, **same).body == whole.body[1:3]
    other = live.get(path, **same | {"If-Range": '"other"'})
    assert (other.status, other.body) == (200, whole.body)
