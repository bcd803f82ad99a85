"""Odd and broken image files over HTTP: never a failure of the server, always the right code."""

from __future__ import annotations

import pytest

from tests.function.images.odd_files import ODD_FILES
from tests.function.live import SOURCE, Part

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("odd", ODD_FILES, ids=lambda odd: odd.name)
def test_an_odd_file_is_read_or_refused_with_its_code(live, odd):
    part = Part("image", odd.build(), "odd", odd.media_type)
    answer = live.form("/v1/faces", part)
    if odd.problem:
        members = answer.problem(odd.problem)
        assert members["image"] == "image"
    else:
        assert (answer.status, answer.json["faces"]) == (200, [])
        assert (answer.json["width"], answer.json["height"]) == odd.size


MOVES = {"mov": "needs_job", "gif-animated-cut-in-second": "bad_clip"}
"""Where a target may be what a photo may not, by the name of the file."""


@pytest.mark.parametrize("odd", ODD_FILES[::7], ids=lambda odd: odd.name)
def test_an_odd_target_has_no_face_or_its_code(live, odd):
    answer = live.form("/v1/swap", SOURCE, Part("target", odd.build(), "odd", odd.media_type))
    answer.problem(MOVES.get(odd.name, odd.problem or "no_face"))
