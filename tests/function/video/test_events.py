"""A video lands in a bucket, a swapped video comes out."""

from __future__ import annotations

import pytest

from tests.function.background.events import forms
from tests.function.background.events.test_events import outcome, post
from tests.function.live import HOPPER, Live
from tests.function.video.films import animation, frames_of, scene, sound_of, times_of

RULES = """
[[rule]]
name = "clips"
bucket = "clips"
at = "{folder}/clips/"
source = "{folder}/hopper.jpg"
output = "{folder}/out/{{stem}}{{suffix}}"
"""


@pytest.fixture(scope="module")
def bucket(folder):
    (folder / "clips").mkdir()
    (folder / "hopper.jpg").write_bytes(HOPPER)
    (folder / "events.toml").write_text(RULES.format(folder=folder.as_uri()))
    return folder


@pytest.fixture(scope="module")
def live(bucket):
    with Live(events=bucket / "events.toml", uri_folders=(bucket,), event_ack_s=60) as server:
        yield server


def test_a_video_that_is_uploaded_is_swapped(live, bucket, plain):
    (bucket / "clips" / "a.mp4").write_bytes(plain.read_bytes())
    assert outcome(post(live, forms.minio(forms.record("clips", "a.mp4")))) == "done"
    out = bucket / "out" / "a.mp4"
    assert times_of(out) == times_of(plain)
    assert sound_of(out) == sound_of(plain)
    assert (frames_of(out, 1)[0] != frames_of(plain, 1)[0]).any()


def test_an_animation_that_is_uploaded_stays_one(live, bucket):
    animation(bucket / "clips" / "b.gif", scene(3), duration=[40, 90, 130])
    assert outcome(post(live, forms.minio(forms.record("clips", "b.gif")))) == "done"
    assert (bucket / "out" / "b.gif").read_bytes().startswith(b"GIF89a")
