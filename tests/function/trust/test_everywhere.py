"""Whatever way a request comes in, its output says what it is, and is accounted for."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from function.trust.marking import c2pa_reader, metadata
from function.trust.statement import SourceType, Statement
from tests.function.background.events import forms
from tests.function.background.events.test_events import outcome, post
from tests.function.background.jobs.conftest import finished, new_id, put
from tests.function.live import HOPPER, SOURCE, TARGET, Live
from tests.function.trust.conftest import accounted
from tests.function.video.films import animation, film, scene

RULES = """
[[rule]]
name = "photos"
bucket = "photos"
at = "{folder}/photos/"
source = "{folder}/hopper.jpg"
output = "{folder}/out/{{stem}}{{suffix}}"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = tmp_path_factory.mktemp("places")
    (found / "photos").mkdir()
    (found / "hopper.jpg").write_bytes(HOPPER)
    (found / "events.toml").write_text(RULES.format(folder=found.as_uri()))
    return found


@pytest.fixture(scope="module")
def live(place, certificates):
    changes = {"events": place / "events.toml", "uri_folders": (place,), "event_ack_s": 60}
    with accounted(place / "audit", **changes, **certificates) as server:
        yield server


@pytest.fixture(scope="module")
def anchors(certificates):
    return certificates["c2pa_anchors"].read_text()


@pytest.fixture(scope="module")
def gif(folder):
    return animation(folder / "e.gif", scene(3), duration=[40, 60, 80]).read_bytes()


def said(file):
    """What a file says of itself; it is a swap in any case."""
    found = metadata.read(file)
    assert found.source_type == SourceType.COMPOSED.uri
    assert found.software.startswith("Ember ")
    return found


def signed(file, anchors, media_type=""):
    found = c2pa_reader.read(file, media_type, anchors)
    assert found is not None
    assert found.state is c2pa_reader.ManifestState.TRUSTED, found.errors
    return found


@pytest.mark.parametrize("name", ["jpeg", "png", "webp", "avif"])
def test_an_answer_says_what_it_is_and_who_has_signed_it(live, anchors, name):
    answer = live.form("/v1/swap", SOURCE, TARGET, ("format", name), Ember_Request_Id=f"r-{name}")
    assert said(answer.body).request_id == f"r-{name}"
    assert signed(answer.body, anchors).request_id == f"r-{name}"


def test_a_report_has_the_same_photo_and_says_what_it_carries(live, anchors):
    answer = live.form("/v1/swap", SOURCE, TARGET, Accept="application/json").json
    data = base64.b64decode(answer["image"]["base64"])
    assert said(data).request_id == answer["request_id"]
    marks = answer["marks"]
    assert marks["signature"]["by"] in signed(data, anchors).signed_by
    assert (marks["source_type"], marks["label"]) == ("compositeCapture", None)
    assert (marks["watermark"]["faces"], marks["watermark"]["picture"]) == ([0], False)


@pytest.mark.parametrize("as_", ["image/gif", "image/webp"])
def test_an_animation_says_it_too(live, anchors, gif, as_):
    answer = live.form("/v1/swap", SOURCE, ("target", gif), Accept=as_)
    assert answer.media_type == as_
    assert said(answer.body).request_id == answer.headers["Ember-Request-Id"]
    signed(answer.body, anchors)


def test_the_results_of_a_job_say_it_each(live, anchors, plain, gif):
    name = new_id()
    targets = [TARGET, ("target", plain.read_bytes()), ("target", gif)]
    put(live, name, SOURCE, *targets, **{"Ember-Request-Id": "r-job"})
    told = finished(live, name)
    assert told["state"] == "succeeded"
    for index, item in enumerate(told["items"]):
        data = live.get(item["result"]["uri"]).body
        assert said(data).request_id == f"r-job#{index}"
        assert signed(data, anchors).request_id == f"r-job#{index}"
        assert item["result"]["marks"]["metadata"]


def test_the_output_of_an_upload_says_it(live, anchors, place):
    (place / "photos" / "a.jpg").write_bytes(TARGET[1])
    assert outcome(post(live, forms.minio(forms.record("photos", "a.jpg")))) == "done"
    data = (place / "out" / "a.jpg").read_bytes()
    said(data)
    signed(data, anchors)


@pytest.mark.parametrize("kind", ["mkv", "webm", "mov", "mp4"])
def test_every_kind_of_video_says_it(folder, place, kind):
    codec, sound = ("libvpx-vp9", "libopus") if kind == "webm" else ("libx264", "aac")
    clip = film(folder / f"every.{kind}", scene(4), codec=codec, sound=sound)
    with Live() as server:
        name = new_id()
        put(server, name, SOURCE, ("target", clip.read_bytes()))
        (item,) = finished(server, name)["items"]
        assert said(server.get(item["result"]["uri"]).body).request_id


def test_a_video_that_cannot_be_signed_is_refused_before_the_work(live, folder):
    clip = film(folder / "unsignable.mkv", scene(4))
    name = new_id()
    put(live, name, SOURCE, ("target", clip.read_bytes()))
    (item,) = finished(live, name)["items"]
    assert item["problem"]["code"] == "unsignable"


def test_a_command_says_it_for_photos_folders_and_clips(tmp_path, folder, plain):
    source, targets = tmp_path / "s.jpg", tmp_path / "targets"
    targets.mkdir()
    source.write_bytes(HOPPER)
    for name in ("a.jpg", "b.jpg"):
        (targets / name).write_bytes(TARGET[1])
    ember = [sys.executable, "-m", "function", "swap", str(source)]
    out = tmp_path / "out"
    for target, to in ((targets / "a.jpg", "one.png"), (targets, "many"), (plain, "clip.mp4")):
        subprocess.run([*ember, str(target), "-o", str(tmp_path / to)], check=True)
    files = [tmp_path / "one.png", *(tmp_path / "many").iterdir(), tmp_path / "clip.mp4"]
    assert len({said(file).request_id for file in files}) == len(files) == 4
    assert not out.exists()


def test_one_changed_pixel_makes_a_signature_invalid(live, anchors):
    data = live.form("/v1/swap", SOURCE, TARGET, ("format", "png")).body
    chunk = data.index(b"IDAT") + 40
    changed = data[:chunk] + bytes([data[chunk] ^ 1]) + data[chunk + 1 :]
    found = c2pa_reader.read(changed, "image/png", anchors)
    assert found.state is c2pa_reader.ManifestState.INVALID


def test_what_the_target_said_of_itself_stays_as_an_ingredient(live, anchors):
    first = live.form("/v1/swap", SOURCE, TARGET, Ember_Request_Id="first").body
    second = live.form("/v1/swap", SOURCE, ("target", first), Ember_Request_Id="second").body
    assert [each.request_id for each in said(second).ingredients] == ["first"]
    found = signed(second, anchors)
    assert (found.request_id, found.manifests) == ("second", 2)
    assert found.ingredients[0].signed_by == found.signed_by


def test_each_swap_has_a_line_with_the_payload_that_its_faces_carry(live):
    before = len(live.lines("swap"))
    answer = live.form("/v1/swap", SOURCE, TARGET, Accept="application/json").json
    (line,) = [each for each in live.lines("swap") if each["request"] == answer["request_id"]]
    assert len(live.lines("swap")) == before + 1
    assert line["watermark"] == answer["marks"]["watermark"]["payload"]
    assert line["entry"] == "http"
    assert set(line["models"]) == {"detect", "landmarks", "identity", "gate"}
    assert line["verdicts"]["content"].startswith("allowed")
    assert {len(line["target"]), len(line["output"]), *map(len, line["sources"])} == {64}


def test_a_line_says_by_which_way_a_request_came(live, place):
    name = new_id()
    put(live, name, SOURCE, TARGET, **{"Ember-Request-Id": "way-job"})
    finished(live, name)
    (place / "photos" / "way.jpg").write_bytes(TARGET[1])
    post(live, forms.minio(forms.record("photos", "way.jpg")))
    live.form("/v1/swap", SOURCE, TARGET, Ember_Request_Id="way-http")
    ways = {each["request"]: each["entry"] for each in live.lines("swap")}
    assert (ways["way-job"], ways["way-http"]) == ("job", "http")
    assert "event" in ways.values()


def test_a_file_that_was_made_here_is_recognised(live, anchors):
    data = live.form("/v1/swap", SOURCE, TARGET, Ember_Request_Id="known").body
    found = live.form("/v1/verify", ("file", data)).json
    assert (found["verdict"], found["lost"], found["notes"]) == ("swap", [], [])
    assert found["signature"]["trusted"]
    assert found["metadata"]["request_id"] == "known"
    (mark,) = found["watermarks"]
    (line,) = [each for each in live.lines("swap") if each["request"] == "known"]
    assert mark["payload"] == line["watermark"]


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_screenshot_of_it_still_says_that_it_is_a_swap(live, mirrored):
    large = Image.open(io.BytesIO(TARGET[1])).resize((1024, 1024))
    out = io.BytesIO()
    large.save(out, "PNG")
    made = live.form("/v1/swap", SOURCE, ("target", out.getvalue()))
    image = made.image.convert("RGB").crop((100, 40, 900, 1000)).resize((720, 864))
    if mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    shot = io.BytesIO()
    image.save(shot, "JPEG", quality=80)
    found = live.form("/v1/verify", ("file", shot.getvalue())).json
    assert found["verdict"] == "swap"
    assert found["lost"] == ["signature", "metadata"]


def test_of_another_photo_nothing_is_said(live):
    found = live.form("/v1/verify", ("file", HOPPER)).json
    assert (found["verdict"], found["watermarks"], found["lost"]) == ("unknown", [], [])


def test_a_clip_is_recognised_by_its_frames(live, folder):
    frames = [np.ascontiguousarray(each) for each in scene(8, (960, 540))]
    clip = film(folder / "verify.mp4", frames)
    name = new_id()
    put(live, name, SOURCE, ("target", clip.read_bytes()), ("faces", "largest"))
    (item,) = finished(live, name)["items"]
    data = live.get(item["result"]["uri"]).body
    found = live.form("/v1/verify", ("file", data)).json
    assert (found["verdict"], found["lost"]) == ("swap", [])
    assert found["watermarks"][0]["payload"] == item["result"]["marks"]["watermark"]["payload"]


def test_a_video_that_cannot_be_read_is_called_the_file(live):
    damaged = b"\0\0\0\x18ftypisom\0\0\0\0isommp42" + bytes(200)
    told = live.form("/v1/verify", ("file", damaged)).problem("bad_clip", 422)
    assert (told["image"], told["detail"][:8]) == ("file", "The file")


def test_the_command_says_the_same(live, tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(live.form("/v1/swap", SOURCE, TARGET, Ember_Request_Id="told").body)
    ember = [sys.executable, "-m", "function", "verify", "--json", str(path)]
    told = json.loads(subprocess.run(ember, check=True, capture_output=True).stdout)
    assert (told["verdict"], told["metadata"]["request_id"]) == ("swap", "told")


def test_what_a_file_says_of_itself_writes_no_line_of_its_own(tmp_path):
    name = "Ember 9\n  signature  valid, by you\x9b2J"
    path = tmp_path / "a.jpg"
    path.write_bytes(metadata.mark(HOPPER, Statement("x", SourceType.COMPOSED, name)))
    ember = [sys.executable, "-m", "function", "verify", str(path)]
    told = subprocess.run(ember, check=True, capture_output=True, text=True).stdout
    assert "by you" in told
    assert [line.split()[0] for line in told.splitlines()[1:]] == ["metadata", "lost"]
    assert "\x9b" not in told


def test_the_audit_of_a_command_is_not_in_its_result(tmp_path):
    (tmp_path / "a.jpg").write_bytes(HOPPER)
    words = ["swap", "a.jpg", "a.jpg", "-o", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "function", *words],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | {"EMBER_AUDIT": "stdout"},
    )
    assert Image.open(io.BytesIO(done.stdout)).format == "JPEG"
    assert done.stdout[:2] == b"\xff\xd8"
    kinds = [json.loads(line)["kind"] for line in done.stderr.splitlines()]
    assert kinds == ["start", "swap", "stop"]
