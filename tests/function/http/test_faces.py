"""`POST /v1/faces`: which faces a photo has."""

from __future__ import annotations

import io

from PIL import Image

from tests.function.live import COLLINS, HOPPER, NOBODY


def test_the_faces_of_a_photo_from_left_to_right(live):
    both = Image.new("RGB", (1024, 512))
    for place, data in enumerate((COLLINS, HOPPER)):
        both.paste(Image.open(io.BytesIO(data)), (512 * place, 0))
    out = io.BytesIO()
    both.save(out, "PNG")
    told = live.form("/v1/faces", ("image", out.getvalue())).json
    assert (told["width"], told["height"], told["order"]) == (1024, 512, "left_to_right")
    assert [face["index"] for face in told["faces"]] == [0, 1]
    left, right = (face["box"] for face in told["faces"])
    assert left["left"] < 512 < right["left"]


def test_a_photo_without_a_face_has_an_empty_list(live):
    answer = live.form("/v1/faces", ("image", NOBODY))
    assert (answer.status, answer.json["faces"]) == (200, [])


def test_the_answer_is_json_or_not_acceptable(live):
    assert live.form("/v1/faces", ("image", HOPPER), Accept="*/*").media_type == "application/json"
    live.form("/v1/faces", ("image", HOPPER), Accept="image/png").problem("not_acceptable", 406)
