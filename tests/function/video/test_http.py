"""Clips over HTTP: short animations are answered, everything else is a job."""

from __future__ import annotations

import io
import signal
import time
from fractions import Fraction

import pytest
from PIL import Image

from function.images.frames import frames
from tests.function.background.jobs.conftest import finished, new_id, put
from tests.function.background.jobs.conftest import redis as redis  # noqa: PLC0414 (a fixture)
from tests.function.background.jobs.test_replicas import environ as environ  # noqa: PLC0414 (a fixture)
from tests.function.background.jobs.test_replicas import job, replicas, send
from tests.function.background.jobs.test_replicas import put as put_at
from tests.function.live import SOURCE, TARGET, Live
from tests.function.raw import eventually
from tests.function.video.films import animation, film, scene, sound_of, times_of


@pytest.fixture(scope="module")
def live():
    with Live() as server:
        yield server


@pytest.fixture(scope="module")
def video(plain):
    return "target", plain.read_bytes()


@pytest.fixture(scope="module")
def gif(folder):
    path = animation(folder / "http.gif", scene(5), duration=[40, 60, 80, 100, 120], loop=2)
    return "target", path.read_bytes()


@pytest.fixture(scope="module")
def slow(folder):
    """Two frames a second for half a minute: eight parts."""
    frames = list(scene(64, (320, 180)))
    times = [Fraction(k, 2) for k in range(len(frames))]
    return film(folder / "slow.mp4", frames, times=times)


def test_a_video_is_refused_with_advice_to_make_a_job_of_it(live, video):
    told = live.form("/v1/swap", SOURCE, video).problem("needs_job", 422)
    assert "respond-async" in told["hint"]


def test_a_short_animation_is_answered_as_one(live, gif):
    for accept in ("*/*", "image/gif", "image/*"):
        answer = live.form("/v1/swap", SOURCE, gif, Accept=accept)
        assert answer.media_type == "image/gif"
        image = Image.open(io.BytesIO(answer.body))
        assert (image.n_frames, image.info["loop"]) == (5, 2)


def test_the_report_of_an_animation_has_the_faces_of_its_first_frame(live, gif):
    told = live.form("/v1/swap", SOURCE, gif, Accept="application/json").json
    assert len(told["faces"]) == 2
    assert told["image"]["media_type"] == "image/gif"
    assert "frames" in {each["stage"] for each in told["timings"]}


def test_a_wish_for_a_photo_gets_the_first_frame(live, gif):
    answer = live.form("/v1/swap", SOURCE, gif, Accept="image/jpeg")
    assert answer.media_type == "image/jpeg"
    assert "first_frame" in answer.headers["Ember-Warnings"]


def test_gif_is_no_format_of_photos(live):
    live.form("/v1/swap", SOURCE, TARGET, Accept="image/gif").problem("not_acceptable", 406)


def test_a_long_animation_is_refused_with_that_advice_and_done_as_a_job(gif):
    with Live(clip_direct_pixels=400_000) as server:
        told = server.form("/v1/swap", SOURCE, gif).problem("needs_job", 422)
        assert (told["limit"], told["value"]) == (400_000, 5 * 384 * 216)
        name = new_id()
        assert put(server, name, SOURCE, gif).status == 201
        result = finished(server, name)["items"][0]["result"]
        assert result["media_type"] == "image/gif"
        assert frames(server.get(result["uri"]).body).count == 5


def test_a_video_is_done_as_a_job(live, video, plain, tmp_path):
    name = new_id()
    assert put(live, name, SOURCE, video).status == 201
    told = finished(live, name)
    assert told["state"] == "succeeded", told
    (item,) = told["items"]
    assert item["frames"] == {"done": 25, "total": 25}
    assert item["result"]["media_type"] == "video/mp4"
    answer = live.get(item["result"]["uri"])
    assert answer.media_type == "video/mp4"
    (tmp_path / "out.mp4").write_bytes(answer.body)
    assert times_of(tmp_path / "out.mp4") == times_of(plain)
    assert sound_of(tmp_path / "out.mp4") == sound_of(plain)


def test_prefer_respond_async_makes_a_job_of_a_video(live, video):
    answer = live.form("/v1/swap", SOURCE, video, Prefer="respond-async")
    assert answer.status == 202
    assert finished(live, answer.json["id"])["state"] == "succeeded"


@pytest.mark.parametrize(
    ("more", "target", "code"),
    [
        ((), b"\0\0\0\x18ftypisom" + bytes(300), "bad_clip"),
        ((("format", "png"),), None, "bad_value"),
        ((("faces", "index:5"),), None, "no_such_face"),
    ],
)
def test_the_job_says_what_is_wrong_with_a_video(live, video, more, target, code):
    name = new_id()
    put(live, name, SOURCE, ("target", target) if target else video, *more)
    told = finished(live, name)
    assert told["state"] == "failed"
    assert told["items"][0]["problem"]["code"] == code


def test_a_video_that_is_too_long_is_refused_by_its_job(video):
    with Live(clip_max_frames=10) as server:
        name = new_id()
        put(server, name, SOURCE, video)
        assert finished(server, name)["items"][0]["problem"]["code"] == "clip_too_long"


def test_a_cancelled_job_stops_its_video_and_keeps_nothing(slow):
    with Live(threads=1) as server:
        name = new_id()
        put(server, name, SOURCE, ("target", slow.read_bytes()))
        path = f"/v1/jobs/{name}"
        eventually(lambda: (server.get(path).json["items"][0]["frames"] or {}).get("done"), 30)
        assert server.send("DELETE", path).json["state"] == "cancelled"
        eventually(lambda: server.service.in_work == 0, 10)


def test_another_replica_goes_on_with_a_video_where_one_was_killed(environ, slow, tmp_path):
    with replicas(environ) as servers:
        name = new_id()
        status, told = put_at(servers[0], name, SOURCE, ("target", slow.read_bytes()))
        assert status == 201, told
        eventually(lambda: _done(servers[0], name) > 20, 60)  # two parts and more
        worker = max(servers, key=lambda each: each.process.pid in _busy(servers))
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        (other,) = [each for each in servers if each is not worker]
        eventually(lambda: job(other, name)["state"] == "succeeded", 90)
        assert _done(other, name) == 64
        kept = [e for e in other.events() if e["message"] == "a part of a clip is done already"]
        assert len(kept) >= 2
        out = tmp_path / "out.mp4"
        out.write_bytes(send(other, "GET", job(other, name)["items"][0]["result"]["uri"])[2])
        assert times_of(out) == times_of(slow)
        assert sound_of(out) == sound_of(slow)


def _done(server, name):
    frames = job(server, name)["items"][0]["frames"]
    return frames["done"] if frames else 0


def _busy(servers):
    """The process that has used the most CPU time in a moment."""
    import psutil

    processes = [psutil.Process(each.process.pid) for each in servers]
    before = [sum(each.cpu_times()[:2]) for each in processes]
    time.sleep(0.5)
    used = [sum(each.cpu_times()[:2]) - was for each, was in zip(processes, before, strict=True)]
    return {processes[used.index(max(used))].pid}
