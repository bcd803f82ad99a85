"""Fields and encodings of requests: everything that can be wrong has its code."""

from __future__ import annotations

import json

import pytest

from tests.function.live import (
    BOUNDARY,
    COLLINS,
    FORM,
    HOPPER,
    JSON,
    SOURCE,
    TARGET,
    Part,
    multipart,
)

END = f"--{BOUNDARY}--\r\n".encode()
OPEN = f"--{BOUNDARY}\r\n".encode()
GOOD = multipart(("image", HOPPER))


def headers_of(content_type):
    return {"Content-Type": content_type} if content_type is not None else {}


@pytest.mark.parametrize(
    ("parts", "code", "field"),
    [
        ([], "missing_field", "source"),
        ([TARGET], "missing_field", "source"),
        ([SOURCE, TARGET, ("faces", "like")], "missing_field", "like"),
        ([SOURCE, TARGET, ("like", COLLINS)], "bad_value", "like"),
        ([SOURCE, TARGET, ("faces", "all"), ("like", COLLINS)], "bad_value", "like"),
        ([SOURCE, TARGET, TARGET], "bad_value", "target"),
        ([SOURCE] * 9 + [TARGET], "bad_value", "source"),
        ([SOURCE, TARGET, ("format", "png"), ("format", "png")], "bad_value", "format"),
        ([SOURCE, TARGET, ("format", "gif")], "bad_value", "format"),
        ([SOURCE, TARGET, ("format", "")], "bad_value", "format"),
        ([SOURCE, TARGET, ("format", b"png")], "bad_value", "format"),
        ([SOURCE, TARGET, ("image", "maybe")], "bad_value", "image"),
        ([SOURCE, TARGET, ("faces", "some")], "bad_value", "faces"),
        ([SOURCE, TARGET, ("faces", "index:")], "bad_value", "faces"),
        ([SOURCE, TARGET, ("faces", "index:-1")], "bad_value", "faces"),
        ([SOURCE, TARGET, ("faces", "index:0" + ",0" * 2500)], "bad_value", "faces"),
        ([SOURCE, TARGET, ("faces", "all", None)], "bad_value", None),
        ([SOURCE, TARGET, ("quality", "0")], "bad_value", "quality"),
        ([SOURCE, TARGET, ("boost", "64")], "bad_value", "boost"),
        ([SOURCE, TARGET, ("boost", "256")], "bad_value", "boost"),  # there is no model for it
        ([SOURCE, TARGET, ("weight", "101")], "bad_value", "weight"),
        ([SOURCE, TARGET, ("weight", "0")], "bad_value", "weight"),
        ([SOURCE, TARGET, ("enhance", "30")], "bad_value", "enhance"),
        ([SOURCE, TARGET, ("masks", "hair")], "bad_value", "masks"),
        ([SOURCE, TARGET, ("masks", "box")], "bad_value", "masks"),
        ([SOURCE, TARGET, ("quality", "-5")], "bad_value", "quality"),
        ([SOURCE, TARGET, ("quality", "8.5")], "bad_value", "quality"),
        ([SOURCE, TARGET, ("quality", "٩")], "bad_value", "quality"),
        ([SOURCE, TARGET, ("quality", "1" * 5000)], "bad_value", "quality"),
        ([("source", "text"), TARGET], "bad_value", "source"),
        ([Part("source", HOPPER, None, None), TARGET], "bad_value", "source"),
        ([("source", b""), TARGET], "bad_image", None),
        ([SOURCE, TARGET, ("x" * 500, "y")], "unknown_field", "x" * 80),
        ([SOURCE, TARGET, ("", "y")], "unknown_field", ""),
    ],
)
def test_a_wrong_field_of_a_form_is_refused_with_its_code(live, parts, code, field):
    if parts and len(parts[-1]) == 3 and code == "bad_value":
        parts[-1] = Part("faces", b"\xff\xfe", None, None)
        field = "faces"
    members = live.form("/v1/swap", *parts).problem(code)
    assert members.get("field") == field


def test_a_file_part_needs_no_name_when_it_says_that_it_is_an_image(live):
    assert live.form("/v1/faces", Part("image", HOPPER, None, "image/jpeg")).status == 200


@pytest.mark.parametrize(
    "head",
    [
        'name="image"; filename="café.jpg"'.encode("cp1252"),
        'name="image"; filename="фото.jpg"'.encode("cp1251"),
        'name="image"; filename="写真.jpg"'.encode("cp932"),
        'name="image"; filename="表"'.encode("cp932"),  # which ends with a backslash
        'name="image"; filename="照片.jpg"'.encode("gb18030"),
        'filename="사진.jpg"; name="image"'.encode("cp949"),
        'name="image"; filename="a…b.jpg"'.encode("cp1252"),  # a line break of Unicode
        b'name="image"; filename="\xff\xfe\x00.jpg"',
        b'name="image"; filename="a.jpg"\r\nContent-Description: Gr\xfc\xdfe',
        b"name=image; filename*=utf-8''%FF%fe.jpg",
        b"name=image; filename*=no-such-code-page''a.jpg",
    ],
)
def test_the_name_of_a_file_may_have_whatever_bytes(live, head):
    body = OPEN + b"Content-Disposition: form-data; " + head + b"\r\n\r\n" + HOPPER + b"\r\n" + END
    assert live.send("POST", "/v1/faces", body, FORM).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\r\n",
        b"no boundary at all",
        END,
        GOOD[:-4],
        GOOD[: len(GOOD) // 2],
        GOOD[:40],
        OPEN,
        OPEN + b"\r\nno head\r\n" + END,
        OPEN + b"Content-Disposition: form-data\r\n\r\nx\r\n" + END,
        OPEN + b'Content-Disposition: attachment; name="image"\r\n\r\nx\r\n' + END,
        OPEN + b'Content-Disposition: form-data; name="\xff"\r\n\r\nx\r\n' + END,
        OPEN + b"X: " + b"y" * 9000 + b"\r\n\r\nx\r\n" + END,
        OPEN[:-2] + b" junk\r\n" + GOOD[len(OPEN) :],
        multipart(*[("image", b"x")] * 1).replace(b"\r\n", b"\n"),
    ],
)
def test_a_broken_multipart_body_is_a_bad_request(live, body):
    answer = live.send("POST", "/v1/faces", body, FORM)
    if body == END:
        answer.problem("missing_field", 422)
    else:
        answer.problem("bad_request", 400)


def test_thousands_of_parts_are_a_bad_request(live):
    answer = live.form("/v1/swap", *[("format", "png")] * 1, *[Part("source", b"", "")] * 5000)
    answer.problem("bad_request", 400)


def test_preamble_epilogue_and_padding_are_allowed(live):
    padded = GOOD.replace(OPEN, OPEN[:-2] + b" \t\r\n")
    body = b"preamble\r\n" + padded + b"epilogue"
    assert live.send("POST", "/v1/faces", body, FORM).status == 200


@pytest.mark.parametrize(
    "disposition",
    [
        'form-data; name="image"; filename="a.jpg"',
        "form-data; name=image; filename=a.jpg",
        "form-data; filename=a.jpg; name=image",
        "form-data; name=\"image\"; filename*=UTF-8''%e2%82%ac.jpg",
        'form-data; name="image"; filename="a\\"b.jpg"',
        'form-data; name="image"; filename="a;b.jpg"',
        'form-data; name="image"; filename="größe.jpg"',
        'FORM-DATA; NAME="image"; FILENAME="a.jpg"',
    ],
)
def test_a_files_head_is_read_however_a_client_writes_it(live, disposition):
    head = f"content-disposition: {disposition}\r\n\r\n".encode()
    body = OPEN + head + HOPPER + b"\r\n" + END
    assert live.send("POST", "/v1/faces", body, FORM).status == 200


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "image/jpeg",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "multipart/mixed; boundary=x",
        "multipart",
        "/",
        "\xff\xfe",
    ],
)
def test_other_content_types_are_not_supported(live, content_type):
    answer = live.send("POST", "/v1/swap", b"x", headers_of(content_type))
    answer.problem("unsupported_media_type", 415)
    assert answer.headers["Accept-Post"] == "multipart/form-data, application/json"


@pytest.mark.parametrize(
    "parameters",
    ["", "; boundary=", '; boundary=""', "; boundary=" + "b" * 71, "; boundary=x"],
)
def test_a_wrong_boundary_is_a_bad_request(live, parameters):
    content_type = ("multipart/form-data" + parameters).encode()
    answer = live.send("POST", "/v1/faces", GOOD, {"Content-Type": content_type})
    answer.problem("bad_request", 400)


@pytest.mark.parametrize(
    "content_type",
    [
        f'Multipart/Form-Data; boundary="{BOUNDARY}"',
        f"multipart/form-data;charset=utf-8;boundary={BOUNDARY}",
        f"multipart/form-data; boundary*=us-ascii''{BOUNDARY}",
    ],
)
def test_the_content_type_is_read_however_a_client_writes_it(live, content_type):
    assert live.send("POST", "/v1/faces", GOOD, {"Content-Type": content_type}).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b'{"image": NaN}',
        b'{"image": Infinity}',
        b'{"image": "data:,x", "image": "data:,x"}',
        b'{"image": "data:,x"} trailing',
        b"\xef\xbb\xbf{}",
        b'{"image": "\xff"}',
        '{"image": "data:,x"}'.encode("utf-16"),
        b'{"a": ' * 5000,
        b"[" * 200_000,
        b'{"image": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"image": ' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"image": [' + b"{}," * 500_000 + b"{}]}",
        b"{" + b",".join(b'"%d": 1' % n for n in range(2000)) + b"}",
        b'{"image": ' + b"1" * 5000 + b"}",
        b'{"image": "data:,x',
    ],
    ids=range(20),
)
def test_what_is_no_json_object_is_a_bad_request(live, body):
    live.send("POST", "/v1/faces", body, JSON).problem("bad_request", 400)


@pytest.mark.parametrize(
    ("members", "code", "field"),
    [
        ({}, "missing_field", "source"),
        ({"target": None}, "bad_value", "target"),
        ({"target": 7}, "bad_value", "target"),
        ({"target": ["data:,x"]}, "bad_value", "target"),
        ({"target": {"data": "x"}}, "bad_value", "target"),
        ({"source": []}, "bad_value", "source"),
        ({"source": ["data:,x"] * 9}, "bad_value", "source"),
        ({"source": ["data:,x", None]}, "bad_value", "source"),
        ({"source": "photo.jpg", "target": "data:,x"}, "bad_value", "source"),
        ({"source": "ftp://a.org/a", "target": "data:,x"}, "unsupported_uri", "source"),
        ({"source": "data:,", "target": "data:,x"}, "bad_image", None),
        ({"quality": "80"}, "bad_value", "quality"),
        ({"quality": 80.0}, "bad_value", "quality"),
        ({"quality": True}, "bad_value", "quality"),
        ({"quality": 0}, "bad_value", "quality"),
        ({"format": 1}, "bad_value", "format"),
        ({"faces": ["all"]}, "bad_value", "faces"),
        ({"consent": "\ud800"}, "bad_value", "consent"),
        ({"Source": "data:,x"}, "unknown_field", "Source"),
        ({"\ud800": 1}, "unknown_field", "\ud800"),
        ({"q" * 3_000_000: 1}, "unknown_field", "q" * 80),
    ],
    ids=range(21),
)
def test_a_wrong_field_of_a_json_body_is_refused_with_its_code(live, members, code, field):
    answer = live.json("/v1/swap", json.dumps(members).encode())
    assert answer.problem(code).get("field") == field


@pytest.mark.parametrize("path", ["/v1/swap", "/v1/faces"])
def test_query_parameters_are_refused(live, path):
    members = live.form(path + "?format=png", SOURCE, TARGET).problem("unknown_field", 422)
    assert members["field"] == "format"
    assert "body" in members["hint"]


def test_the_hint_names_the_field_that_was_probably_meant(live):
    for name, near in {"soruce": "source", "Target": "target", "fromat": "format"}.items():
        members = live.form("/v1/swap", (name, "x")).problem("unknown_field")
        assert members["hint"] == f"Did you mean `{near}`?"
    members = live.form("/v1/faces", ("zzz", "x")).problem("unknown_field")
    assert members["hint"] == "The fields are `image`."
