"""JSON bodies in memory: what is in them never makes them larger than is promised."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.http import fields, jsonbody
from function.http.body import BodyReader
from function.http.jsonbody import LongString
from function.http.tables import FACES, JOB, SWAP
from function.problems import Problem

SIZE = 4 * 1024**2
CODED = base64.b64encode(bytes(range(256)) * (SIZE // 342))
HEAD = b"data:image/jpeg;base64,"


def body(payload, **more):
    start = json.dumps(more).encode()[:-1] + (b", " if more else b"")
    return bytearray(start + b'"image": "' + payload + b'"}')


BODIES = {
    "plain": body(HEAD + CODED),
    "an emoji in front": body(HEAD + "😀".encode() + CODED),
    "an emoji behind": body(HEAD + CODED + "😀".encode()),
    "an emoji beside": body(HEAD + CODED, note="😀"),
    "all emoji": body(HEAD + "😀".encode() * (SIZE // 4)),
    "all escaped emoji": body(HEAD + rb"\ud83d\ude00" * (SIZE // 12)),
    "all escaped letters": body(HEAD + rb"\u0041" * (SIZE // 6)),
    "slashes escaped": body(HEAD + CODED.replace(b"/", rb"\/")),
    "percent": body(HEAD + CODED.replace(b"+", b"%2B").replace(b"/", b"%2f")),
    "all percent": body(HEAD + b"%2B" * (SIZE // 3)),
    "all backslashes": body(HEAD + b"\\" * SIZE),
    "all quotes": body(HEAD + rb"\"" * (SIZE // 2)),
    "no data": body("😀".encode() * (SIZE // 4)),
    "not UTF-8": body(HEAD + b"\xff" * SIZE),
    "a long name": bytearray(b'{"' + "😀".encode() * (SIZE // 4) + b'": 1}'),
    "no end": bytearray(b'{"image": "' + "😀".encode() * (SIZE // 4)),
    "lists": body(b"x", more=[[]]).replace(b"[[]]", b"[" + b"[]," * (SIZE // 3) + b"[]]"),
    "many strings": bytearray(b'{"image": [' + b'"ab",' * (SIZE // 5) + b'"ab"]}'),
}


@pytest.mark.parametrize("kind", BODIES)
def test_reading_one_takes_no_more_than_three_times_its_size(kind):
    data, table = BODIES[kind], FACES
    tracemalloc.start()
    try:
        with pytest.raises(Problem) if kind not in GOOD else _nothing():
            fields.from_json(data, table)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 3 * len(data)


GOOD = {"plain", "slashes escaped", "percent"}


class _nothing:  # noqa: N801 (a context like any other)
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize(
    "kind", ["plain", "slashes escaped", "percent", "as Gson has it", "without padding"]
)
def test_what_is_long_is_read_as_what_is_short(kind):
    for size in (10, 5000, 5001, 5002):
        data = (bytes(range(256)) * 20)[:size]
        coded = base64.b64encode(data)
        match kind:
            case "slashes escaped":
                coded = coded.replace(b"/", rb"\/").replace(b"+", rb"\u002B")
            case "percent":
                coded = coded.replace(b"+", b"%2B").replace(b"/", b"%2F").replace(b"=", b"%3d")
            case "as Gson has it":
                coded = coded.replace(b"=", rb"\u003d")
            case "without padding":
                coded = coded.rstrip(b"=")
        (photo,) = fields.from_json(body(HEAD + coded), FACES).photos["image"]
        if size > jsonbody.LONG:
            assert (photo.data, photo.media_type) == (data, "image/jpeg")
        else:
            assert photo.startswith(HEAD.decode())


def test_a_long_uri_without_a_photo_and_a_long_text_are_what_they_say():
    signed, output = "https://h/?s=" + "a" * 3000, "gs://b/" + "ä" * 1500
    sent = fields.from_json(
        json.dumps({"source": signed, "target": [signed, "https://h"], "output": output}).encode(),
        JOB,
    )
    assert sent.photos["source"] == (signed,)
    assert sent.photos["target"] == (signed, "https://h")
    assert sent.values["output"] == output
    plain = "data:text/plain," + 'a"\\\n' * 500
    with pytest.raises(Problem):  # which is no photo, but is read
        fields.from_json(json.dumps({"image": plain, "x": 1}).encode(), FACES)
    (photo,) = fields.from_json(json.dumps({"image": plain}).encode(), FACES).photos["image"]
    assert photo.data == b'a"\\\n' * 500


@pytest.mark.parametrize(
    ("value", "table", "code"),
    [
        ({"image": "https://h/" + "a" * 20_000}, FACES, "bad_value"),
        ({"image": "data:image/png;base64," + "!" * 2000}, FACES, "bad_value"),
        ({"image": "data:image/png;base64," + "A" * 2000 + "==AA"}, FACES, "bad_value"),
        ({"image": "data:" + "a" * 2000}, FACES, "bad_value"),
        ({"image": ["data:,x" + "a" * 2000]}, FACES, "bad_value"),
        ({"source": "data:,", "target": "data:,", "faces": "f" * 5000}, SWAP, "bad_value"),
        ({"source": "data:,", "target": "data:,", "quality": "1" * 5000}, SWAP, "bad_value"),
        ({"n" * 5000: 1}, FACES, "unknown_field"),
    ],
)
def test_what_is_long_and_wrong_is_told_with_its_field(value, table, code):
    with pytest.raises(Problem) as raised:
        fields.from_json(json.dumps(value).encode(), table)
    assert raised.value.code == code
    assert len(raised.value.detail) < 400


TEXTS = st.text(max_size=30) | st.text(min_size=1, max_size=3).map(lambda text: text * 600)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=3)
       | st.dictionaries(st.text(max_size=9), TEXTS, max_size=3), max_size=6),
       st.booleans())  # fmt: skip
def test_every_object_is_what_python_reads(value, ascii_):
    try:
        text = json.dumps(value, ensure_ascii=ascii_).encode()
    except UnicodeEncodeError:
        return
    try:
        found = jsonbody.parse(bytearray(text))
    except Problem:
        assert b"\\" * 1024 in text or text.count(b'"') > 4096
        return
    short = {name: each for name, each in value.items() if len(json.dumps(name)) < jsonbody.LONG}

    def plain(each):
        if isinstance(each, LongString):
            try:
                return each.text(10**6)
            except ValueError:
                return None
        if isinstance(each, dict):
            return {name: plain(one) for name, one in each.items()}
        return [plain(one) for one in each] if isinstance(each, list) else each

    for name, each in short.items():
        got = plain(found[name])
        several = got.values() if isinstance(got, dict) else got
        assert got in (each, None) or (isinstance(each, list | dict) and None in several)


async def test_large_bodies_are_parsed_one_at_a_time_even_when_nobody_waits_any_more():
    limits, over, at_work, most = BodyReader(None, 1, 1.0), threading.Event(), [], []

    def parse():
        at_work.append(1)
        most.append(len(at_work))
        over.wait(30)
        at_work.pop()

    tasks = [asyncio.create_task(limits.parsed(10**9, parse)) for _ in range(5)]
    while not at_work:
        await asyncio.sleep(0.01)
    tasks[0].cancel()
    await asyncio.wait({tasks[0]})
    assert await limits.parsed(10, lambda: "small ones do not wait") == "small ones do not wait"
    assert len(at_work) == 1
    over.set()
    await asyncio.gather(*tasks[1:])
    assert set(most) == {1}
