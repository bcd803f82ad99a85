"""`data:` URIs by themselves."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from function.http.uris import data_only
from function.problems import Problem

DATA = bytes(range(256))
CODED = base64.b64encode(DATA).decode()


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
    upload = await data_only(uri, "image")
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
        await data_only(uri, "image")
    assert (raised.value.code, raised.value.extra["field"]) == ("bad_value", "image")


@pytest.mark.parametrize(
    "uri", ["gs://b/o", "https://h/p", "http://h/p", "file:///etc/passwd", "s3+x://b"]
)
async def test_other_schemes_are_not_supported_yet(uri):
    with pytest.raises(Problem) as raised:
        await data_only(uri, "source")
    assert raised.value.code == "unsupported_uri"
