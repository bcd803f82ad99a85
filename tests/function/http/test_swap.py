"""`POST /v1/swap`: what it answers, in which format, and what it says about it."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.function.live import COLLINS, HOPPER, SOURCE, TARGET, Part

FORMATS = ["jpeg", "png", "webp", "avif"]
ONE = {"Ember_Request_Id": "one"}
"""Results carry the id of their request, so only those of one id can be equal."""


def uri(data, media_type="image/jpeg"):
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def test_a_swap_answers_the_changed_photo_in_the_targets_own_format(live):
    answer = live.form("/v1/swap", SOURCE, TARGET)
    assert (answer.status, answer.media_type) == (200, "image/jpeg")
    assert (answer.image.format, answer.image.size) == ("JPEG", (512, 512))
    assert answer.body != COLLINS


@pytest.mark.parametrize("name", FORMATS)
def test_the_field_format_chooses_the_format(live, name):
    answer = live.form("/v1/swap", SOURCE, TARGET, ("format", name))
    assert answer.media_type == f"image/{name}"
    assert answer.image.format.lower() == name


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_named_in_accept_counts_without_the_field(live, name):
    answer = live.form("/v1/swap", SOURCE, TARGET, Accept=f"image/{name}, */*;q=0.1")
    assert answer.media_type == f"image/{name}"
    assert answer.headers["Vary"] == "Accept"


def test_the_field_format_beats_accept_where_both_are_possible(live):
    accept = "image/webp, image/*;q=0.8"
    answer = live.form("/v1/swap", SOURCE, TARGET, ("format", "png"), Accept=accept)
    assert answer.media_type == "image/png"


def test_a_format_that_accept_rules_out_is_not_acceptable(live):
    answer = live.form("/v1/swap", SOURCE, TARGET, ("format", "png"), Accept="image/webp")
    members = answer.problem("not_acceptable", 406)
    assert members["available"] == ["image/png", "application/json"]


@pytest.mark.parametrize("accept", ["*/*", "image/*", "image/*, */*;q=0.5", "image/apng, */*"])
def test_a_wide_accept_gets_the_targets_own_format(live, accept):
    assert live.form("/v1/swap", SOURCE, TARGET, Accept=accept).media_type == "image/jpeg"


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("image/webp;q=0.5, */*", "gif"),
        ("image/gif, */*", "gif"),
        ("image/webp, */*", "webp"),
        ("image/png;q=0, image/*", "jpeg"),
    ],
)
def test_a_wish_for_any_format_leaves_the_choice_to_the_target(live, accept, name):
    out = io.BytesIO()
    Image.open(io.BytesIO(COLLINS)).save(out, "GIF")
    answer = live.form("/v1/swap", SOURCE, ("target", out.getvalue()), Accept=accept)
    own = "png"  # GIF is not written
    assert answer.media_type == f"image/{own if name == 'gif' else name}"


def test_a_lower_quality_gives_a_smaller_file(live):
    low, high = (live.form("/v1/swap", SOURCE, TARGET, ("quality", q)).body for q in ("20", "95"))
    assert len(low) < len(high) / 2


def test_json_and_multipart_give_the_same_image(live):
    members = {"source": uri(HOPPER), "target": uri(COLLINS)}
    one, other = live.json("/v1/swap", members, **ONE), live.form("/v1/swap", SOURCE, TARGET, **ONE)
    assert one.body == other.body


def test_the_report_has_the_image_and_what_is_known_about_it(live):
    answer = live.form("/v1/swap", SOURCE, TARGET, Accept="application/json", **ONE)
    plain = live.form("/v1/swap", SOURCE, TARGET, **ONE)
    told = answer.json
    assert answer.media_type == "application/json"
    assert base64.b64decode(told["image"]["base64"]) == plain.body
    assert told["image"]["media_type"] == "image/jpeg"
    assert (told["width"], told["height"]) == (512, 512)
    assert told["request_id"] == answer.headers["Ember-Request-Id"]
    (face,) = told["faces"]
    assert face["identity"]["after"] < face["identity"]["before"]
    assert {"decode", "detect", "swap", "encode"} <= {each["stage"] for each in told["timings"]}


def test_the_report_can_leave_the_image_out(live):
    parts = SOURCE, TARGET, ("image", "none")
    assert live.form("/v1/swap", *parts, Accept="application/json").json["image"] is None
    assert live.form("/v1/swap", *parts).media_type == "image/jpeg"


def test_the_report_in_a_chosen_format(live):
    parts = SOURCE, TARGET, ("format", "webp")
    told = live.form("/v1/swap", *parts, Accept="application/json").json
    assert told["image"]["media_type"] == "image/webp"


def test_several_sources_are_one_person(live):
    flipped = mirrored(HOPPER)
    wanted = ONE | {"Accept": "application/json"}
    answer = live.form("/v1/swap", SOURCE, ("source", flipped), TARGET, **wanted)
    assert answer.status == 200
    listed = {"source": [uri(HOPPER), uri(flipped, "image/png")], "target": uri(COLLINS)}
    again = live.json("/v1/swap", listed, **wanted)
    assert again.json["image"] == answer.json["image"]


def test_like_swaps_the_person_on_the_reference_only(live):
    like = ("like", mirrored(COLLINS))
    answer = live.form("/v1/swap", SOURCE, TARGET, ("faces", "like"), like, **ONE)
    assert answer.body == live.form("/v1/swap", SOURCE, TARGET, **ONE).body


def test_warnings_travel_in_the_header_and_in_the_report(live):
    frames = [live.form("/v1/swap", SOURCE, TARGET, ("format", "png")).image.convert("P")] * 2
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=[Image.new("P", (512, 512))])
    still = ("format", "png")
    target = ("target", out.getvalue())
    answer = live.form("/v1/swap", SOURCE, target, still, Accept="application/json")
    assert "first_frame" in answer.json["warnings"]
    assert answer.headers["Ember-Warnings"].split(", ") == answer.json["warnings"]
    assert live.form("/v1/faces", ("image", COLLINS)).headers["Ember-Warnings"] is None


def test_a_file_input_that_was_left_empty_is_no_file(live):
    empty = Part("like", b"", "", "application/octet-stream")
    assert live.form("/v1/swap", SOURCE, TARGET, empty).status == 200
    answer = live.form("/v1/swap", Part("source", b"", ""), TARGET)
    assert answer.problem("missing_field", 422)["field"] == "source"


def mirrored(data):
    out = io.BytesIO()
    ImageOps.mirror(Image.open(io.BytesIO(data))).save(out, "PNG")
    return out.getvalue()


def test_the_pixels_outside_the_face_stay_as_they_were(live):
    answer = live.form("/v1/swap", SOURCE, ("target", mirrored(COLLINS)), Accept="application/json")
    (face,) = answer.json["faces"]
    before = np.asarray(image(mirrored(COLLINS)))
    after = np.asarray(image(base64.b64decode(answer.json["image"]["base64"])))
    box = face["box"]
    outside = np.ones(before.shape[:2], bool)
    outside[box["top"] : box["bottom"], box["left"] : box["right"]] = False
    assert (before[outside] == after[outside]).all()


def image(data):
    return Image.open(io.BytesIO(data)).convert("RGB")
