"""Photos that a request names by URI: from a bucket, a folder and a web server."""

from __future__ import annotations

import asyncio
import base64
import http.server
import threading
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network

import pytest

from function.admission import keys
from function.http.form_reader import FETCHES
from function.requests import Upload
from tests.function.live import COLLINS, HOPPER, SOURCE, TARGET, Live
from tests.function.raw import eventually
from tests.warmup.objects.gcs import fake_gcs


@pytest.fixture(scope="module")
def bucket():
    with fake_gcs("photos") as bucket:
        bucket.blob("people/hopper.jpg").upload_from_string(HOPPER)
        bucket.blob("private/collins.jpg").upload_from_string(COLLINS, "image/jpeg")
        yield bucket


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos")
    (path / "collins.jpg").write_bytes(COLLINS)
    return path


@pytest.fixture(scope="module")
def site(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def live(bucket, folder):
    here = {"uri_folders": (folder,), "uri_networks": (ip_network("127.0.0.0/8"),)}
    with Live(**here, uri_buckets=("photos/people/",)) as server:
        yield server


def test_photos_from_anywhere_give_what_uploads_give(live, folder, site):
    same = live.form("/v1/swap", SOURCE, TARGET, Ember_Request_Id="same").body
    source = "gs://photos/people/hopper.jpg"
    data = "data:image/jpeg;base64," + base64.b64encode(COLLINS).decode()
    for target in (f"{folder.as_uri()}/collins.jpg", f"{site}/collins.jpg", data):
        wanted = {"source": [source], "target": target}
        answer = live.json("/v1/swap", wanted, Ember_Request_Id="same")
        assert answer.status == 200
        assert answer.body == same


def test_a_bucket_that_requests_may_not_name_is_refused(live):
    answer = live.json("/v1/faces", {"image": "gs://photos/private/collins.jpg"})
    members = answer.problem("object_forbidden", 422)
    assert members["field"] == "image"
    assert members["detail"].startswith("`image`: ")


def test_what_is_behind_uris_takes_room_like_bodies(folder):
    narrow = {"max_body_bytes": len(COLLINS), "max_bodies_bytes": len(COLLINS)}
    with Live(uri_folders=(folder,), **narrow) as server:
        uri = f"{folder.as_uri()}/collins.jpg"
        answer = server.json("/v1/swap", {"source": uri, "target": uri})
        assert answer.problem("overloaded", 503)["setting"] == "EMBER_MAX_BODIES_BYTES"
        with pytest.raises(AssertionError):  # what was taken is given back
            server.json("/v1/faces", {"image": "data:,x"}).problem("overloaded")


def test_a_page_instead_of_a_photo_is_said_to_be_one(live, folder, site):
    (folder / "login.html").write_text("<!doctype html><title>Log in</title>")
    answer = live.json("/v1/faces", {"image": f"{site}/login.html"})
    assert "an HTML page" in answer.problem("unsupported_media_type", 415)["detail"]


def test_one_caller_takes_no_more_than_its_share_of_what_is_fetched(tmp_path):
    made = {name: keys.new(name, "vip") for name in ("ann", "bob")}
    (tmp_path / "keys").write_text("\n".join(line for _, line in made.values()))
    sent = {name: f"Bearer {key}" for name, (key, _) in made.items()}
    share, held, over = FETCHES[1], [], threading.Event()

    async def fetch(uri, field, take):
        if uri == "https://slow":
            held.append(field)
            while not over.is_set():
                await asyncio.sleep(0.01)
        return Upload(HOPPER, field)

    def ask(uri, who):
        return server.json("/v1/faces", {"image": uri}, Authorization=sent[who]).status

    with (
        Live(auth="keys", keys=tmp_path / "keys", fetch=fetch) as server,
        ThreadPoolExecutor(share + 8) as pool,
    ):
        slow = [pool.submit(ask, "https://slow", "ann") for _ in range(share + 4)]
        eventually(lambda: len(held) == share)
        assert ask("https://quick", "bob") == 200
        assert len(held) == share
        over.set()
        assert {each.result() for each in slow} == {200}
