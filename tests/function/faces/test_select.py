"""What `faces=…` means, and what is said when it cannot be had."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.faces.face import Box, Detection, Face, Pose
from function.faces.identity import DLIB
from function.faces.select import Selection, Way, choose
from function.problems import Problem


def face(index: int, side: float = 10, where: float = 0.0) -> Face:
    """A face with a square box, whose embedding lies at `where` on a line."""
    box = Box(20.0 * index, 5.0, 20.0 * index + side, 5.0 + side)
    embedding = np.zeros(128, np.float32)
    embedding[0] = where
    detection = Detection(box, np.zeros((5, 2), np.float32), 0.9)
    pose = Pose(0, 0, 0)
    return Face(index, box, detection, detection.points, 1.0, pose, embedding=embedding)


def at(where: float) -> np.ndarray:
    return face(0, where=where).embedding


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("all", Selection()),
        (" largest ", Selection(Way.LARGEST)),
        ("like", Selection(Way.LIKE)),
        ("index:0", Selection(Way.INDEX, (0,))),
        ("index:2,0", Selection(Way.INDEX, (0, 2))),
        ("index: 3 , 3,1", Selection(Way.INDEX, (1, 3))),
        ("index:999999", Selection(Way.INDEX, (999_999,))),
    ],
)
def test_a_selection_is_read(text: str, wanted: Selection):
    assert Selection.parse(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "index", "index:", "index:-1", "index:1,", "index:,1", "index:1;2", "index:1.0", "index:a",
     "index:²", "index:٣", "index:" + "9" * 5000, "ALL", "all,largest", "first", "0", "\0"],
)  # fmt: skip
def test_any_other_selection_is_a_bad_value_of_that_field(text: str):
    with pytest.raises(Problem) as caught:
        Selection.parse(text)
    assert caught.value.code == "bad_value"
    assert caught.value.extra["field"] == "faces"
    assert caught.value.kind.status == 422


@given(st.text(max_size=30) | st.from_regex(r"index:[0-9, ]*", fullmatch=True))
def test_reading_any_text_gives_a_selection_or_a_problem(text: str):
    try:
        selection = Selection.parse(text)
    except Problem:
        return
    assert (selection.way is Way.INDEX) == bool(selection.indices)
    assert list(selection.indices) == sorted(set(selection.indices))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 20))
def test_indices_choose_just_those_faces_in_the_order_of_the_faces(wanted: list[int], count: int):
    faces = [face(i) for i in range(count)]
    selection = Selection.parse("index:" + ",".join(map(str, wanted)))
    if max(wanted) < count:
        assert [f.index for f in choose(faces, selection, None, DLIB)] == sorted(set(wanted))
    else:
        with pytest.raises(Problem) as caught:
            choose(faces, selection, None, DLIB)
        assert caught.value.code == "no_such_face"


def test_a_missing_index_is_answered_with_the_faces_that_there_are():
    with pytest.raises(Problem) as caught:
        choose([face(0), face(1, side=7)], Selection.parse("index:1,2,5"), None, DLIB)
    assert "2, 5" in caught.value.detail
    assert caught.value.extra["faces"] == [
        {"index": 0, "box": [0.0, 5.0, 10.0, 15.0]},
        {"index": 1, "box": [20.0, 5.0, 27.0, 12.0]},
    ]


@pytest.mark.parametrize("text", ["all", "largest", "index:0", "like"])
def test_without_any_face_there_is_nothing_to_choose(text: str):
    with pytest.raises(Problem) as caught:
        choose([], Selection.parse(text), at(0), DLIB)
    assert caught.value.code == "no_face"


def test_all_is_every_face():
    faces = [face(0), face(1), face(2)]
    assert choose(faces, Selection(), None, DLIB) == faces


def test_the_largest_face_is_one_and_the_first_of_equals():
    faces = [face(0, side=10), face(1, side=30), face(2, side=30), face(3, side=29)]
    assert choose(faces, Selection(Way.LARGEST), None, DLIB) == [faces[1]]


def test_like_takes_every_face_of_that_person_in_order():
    faces = [face(0, where=0.5), face(1, where=0.7), face(2, where=0.1)]
    assert choose(faces, Selection(Way.LIKE), at(0), DLIB) == [faces[0], faces[2]]


@given(st.lists(st.floats(0, 2, width=32), min_size=1, max_size=8))
def test_like_chooses_exactly_those_below_the_threshold(distances: list[float]):
    faces = [face(i, where=where) for i, where in enumerate(distances)]
    near = [f for f, where in zip(faces, distances, strict=True) if where < DLIB.same_person]
    if near:
        assert choose(faces, Selection(Way.LIKE), at(0), DLIB) == near
    else:
        with pytest.raises(Problem) as caught:
            choose(faces, Selection(Way.LIKE), at(0), DLIB)
        assert caught.value.code == "no_match"
        got = [entry["distance"] for entry in caught.value.extra["faces"]]
        assert got == pytest.approx(distances, abs=1e-4)
        assert caught.value.extra["threshold"] == DLIB.same_person


def test_like_needs_a_reference():
    with pytest.raises(Problem) as caught:
        choose([face(0)], Selection(Way.LIKE), None, DLIB)
    assert caught.value.code == "missing_field"
    assert caught.value.extra["field"] == "like"
