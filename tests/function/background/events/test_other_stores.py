"""Uploads in a store that speaks S3, read and written through a mounted bucket."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

import pytest

from tests.function.live import COLLINS, HOPPER, Live

from . import forms
from .conftest import HERE, serving
from .test_events import outcome, post

RULES = """
[[rule]]
name = "mounted"
bucket = "photos"
prefix = "in/"
at = "{folder}/photos/"
source = "{folder}/hopper.jpg"
output = "{folder}/out/{{dir}}{{stem}}{{suffix}}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mounted")
    (folder / "photos" / "in").mkdir(parents=True)
    (folder / "hopper.jpg").write_bytes(HOPPER)
    (folder / "secret.jpg").write_bytes(COLLINS)
    (folder / "events.toml").write_text(RULES.format(folder=folder.as_uri()))
    return folder


@pytest.fixture(scope="module")
def live(folder):
    with Live(events=folder / "events.toml", uri_folders=(folder,)) as server:
        yield server


def test_a_notification_of_minio_gives_one_output(live, folder):
    (folder / "photos" / "in" / "a b+ü.jpg").write_bytes(COLLINS)
    request = forms.minio(forms.record("photos", "in/a b+ü.jpg"))
    assert outcome(post(live, request)) == "done"
    output = folder / "out" / "in" / "a b+ü.jpg"
    before = output.stat().st_mtime_ns
    assert outcome(post(live, request)) == "duplicate"
    with Live(events=folder / "events.toml", uri_folders=(folder,)) as another:
        assert outcome(post(another, request)) == "done"  # it finds what is there
    assert output.stat().st_mtime_ns == before


def test_each_record_of_a_notification_is_done(live, folder):
    names = ["in/one.jpg", "in/two.jpg"]
    for name in names:
        (folder / "photos" / name).write_bytes(COLLINS)
    answer = post(live, forms.minio(*(forms.record("photos", name) for name in names)))
    assert answer.media_type == "application/cloudevents-batch+json"
    assert len(answer.json) == 2
    assert all((folder / "out" / name).is_file() for name in names)


@pytest.mark.parametrize("name", ["in/../../secret.jpg", "in/../secret.jpg", "in/./a.jpg"])
def test_names_that_lead_out_of_the_folder_are_neither_read_nor_written(live, folder, name):
    before = sorted(folder.rglob("*"))
    answer = post(live, forms.minio(forms.record("photos", name)))
    answer.problem("bad_value", 422)
    assert sorted(folder.rglob("*")) == before


ASKING = """
[sources]
hopper = "{folder}/hopper.jpg"

[[rule]]
name = "asking"
bucket = "photos"
at = "{store}/"
content_type = "image/*"
source_metadata = "person"
output = "{folder}/asked/{{name}}"
"""


@pytest.fixture
def store():
    """A store that speaks S3, whose objects are `{path: metadata}`, and which may be slow."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            open_.wait(60)
            found = objects.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Type", "image/jpeg")
            self.send_header("Content-Length", str(len(COLLINS)))
            for name, value in (found or {}).items():
                self.send_header(f"X-Amz-Meta-{name}", value)
            self.end_headers()

        def do_GET(self):
            self.do_HEAD()
            self.wfile.write(COLLINS)

        def log_message(self, *_):
            pass

    objects, open_ = {}, threading.Event()
    open_.set()
    with serving(Handler) as url:
        yield url, objects, open_
        open_.set()


@pytest.fixture
def asked(store, folder, tmp_path):
    path = tmp_path / "events.toml"
    path.write_text(ASKING.format(folder=folder.as_uri(), store=store[0]))
    with Live(
        events=path, uri_folders=(folder,), uri_networks=HERE, event_ack_s=3.0, uri_timeout_s=60.0
    ) as server:
        yield server


def test_what_decides_is_what_the_store_says_of_an_upload(asked, store):
    _, objects, _ = store
    objects["/mine.jpg"], objects["/bare.jpg"] = {"Person": "hopper"}, {}
    told = {"userMetadata": {"X-Amz-Meta-Person": "hopper"}, "contentType": "image/jpeg"}
    for more in ({}, told):
        request = forms.minio(forms.record("photos", "mine.jpg", str(len(more)), **more))
        assert outcome(post(asked, request)) == "done"
    answer = post(asked, forms.minio(forms.record("photos", "bare.jpg", **told)))
    answer.problem("no_source", 422)
    gone = post(asked, forms.minio(forms.record("photos", "gone.jpg", **told)))
    gone.problem("object_not_found", 422)


def test_a_store_that_does_not_answer_does_not_hold_up_the_answer(asked, store):
    _, objects, open_ = store
    objects["/slow.jpg"] = {"Person": "hopper"}
    open_.clear()  # and stays so until the test ends, long after the answer
    answer = post(asked, forms.minio(forms.record("photos", "slow.jpg")))
    assert answer.problem("storage_unavailable", 503)["setting"] == "EMBER_EVENT_ACK_S"
    assert outcome(answer) == "later"
    assert int(answer.headers["Retry-After"]) >= 1
    open_.set()
    assert outcome(post(asked, forms.minio(forms.record("photos", "slow.jpg")))) == "done"
