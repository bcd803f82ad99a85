"""Uploads in a store that speaks S3, read and written through a mounted bucket."""

from __future__ import annotations

import pytest

from tests.function.http.live import COLLINS, HOPPER, Live

from . import forms
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
def test_names_that_climb_are_neither_read_nor_written(live, folder, name):
    before = sorted(folder.rglob("*"))
    answer = post(live, forms.minio(forms.record("photos", name)))
    answer.problem("bad_value", 422)
    assert sorted(folder.rglob("*")) == before
