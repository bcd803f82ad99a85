"""The page, the sample photos and the document: what never changes while a replica lives."""

from __future__ import annotations

from importlib.resources import files

import pytest

from tests.function.live import HOPPER

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def test_the_page_comes_with_a_strict_policy(live):
    answer = live.get("/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Security-Policy"] == CSP
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_every_file_of_the_page_is_served_as_what_it_is(live):
    types = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
    for file in (files("function") / "page").iterdir():
        answer = live.get(f"/page/{file.name}")
        assert answer.body == file.read_bytes()
        suffix = "." + file.name.rpartition(".")[2]
        assert answer.media_type == types.get(suffix, answer.media_type)
        assert answer.media_type != "application/octet-stream"


def test_the_sample_photos_are_served(live):
    answer = live.get("/samples/hopper.jpg")
    assert (answer.media_type, answer.body) == ("image/jpeg", HOPPER)


@pytest.mark.parametrize("path", ["/", "/samples/hopper.jpg", "/openapi.json"])
def test_a_file_that_the_client_has_is_not_sent_again(live, path):
    etag = live.get(path).headers["ETag"]
    for tag in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = live.send("GET", path, headers={"If-None-Match": tag})
        assert (answer.status, answer.body, answer.headers["ETag"]) == (304, b"", etag)
    assert live.send("GET", path, headers={"If-None-Match": '"other"'}).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/page/",
        "/page",
        "/page/nothing.js",
        "/page/..",
        "/page/../models/models.toml",
        "/page/%2e%2e%2fmodels%2fmodels.toml",
        "/page/..%2fservice.py",
        "/page//index.html",
        "/samples/hopper",
        "/samples/%00",
        "/samples/",
    ],
)
def test_no_other_file_of_the_package_is_served(live, path):
    live.get(path).problem("not_found", 404)
