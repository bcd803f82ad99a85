"""What `faces=…` means, and what is said when it cannot be had."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.faces.face import Box, Detection, Face, Pose
from function.faces.identity import DLIB
from function.faces.select import NAME, FacePair, Selection, Way, choose, missing
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
        ("0=a", Selection(Way.MAP, pairs=(FacePair(0, "a"),))),
        (" 2 = b , x=a", Selection(Way.MAP, pairs=(FacePair(2, "b"), FacePair("x", "a")))),
        ("1234567=7", Selection(Way.MAP, pairs=(FacePair("1234567", "7"),))),
    ],
)
def test_a_selection_is_read(text: str, wanted: Selection):
    assert Selection.parse(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "index", "index:", "index:-1", "index:1,", "index:,1", "index:1;2", "index:1.0", "index:a",
     "index:²", "index:٣", "index:" + "9" * 5000, "ALL", "all,largest", "first", "0", "\0", "=",
     "0=", "=a", "0=a,", ",0=a", "0=a;1=b", "0=a=b", "0=a,largest", "index:0=a", "0=a b", "0=ä",
     "a.b=c", "0=" + "a" * 33, "0=a,0=b", "0=a,00=b", "x=a,x=b"],
)  # fmt: skip
def test_any_other_selection_is_a_bad_value_of_that_field(text: str):
    with pytest.raises(Problem) as caught:
        Selection.parse(text)
    assert caught.value.code == "bad_value"
    assert caught.value.extra["field"] == "faces"
    assert caught.value.kind.status == 422


@given(st.text(max_size=30) | st.from_regex(r"index:[0-9, ]*|[0-9a=, ]*", fullmatch=True))
def test_reading_any_text_gives_a_selection_or_a_problem(text: str):
    try:
        selection = Selection.parse(text)
    except Problem:
        return
    assert (selection.way is Way.INDEX) == bool(selection.indices)
    assert (selection.way is Way.MAP) == bool(selection.pairs)
    assert list(selection.indices) == sorted(set(selection.indices))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 20))
def test_indices_choose_just_those_faces_in_the_order_of_the_faces(wanted: list[int], count: int):
    faces = [face(i) for i in range(count)]
    selection = Selection.parse("index:" + ",".join(map(str, wanted)))
    if max(wanted) < count:
        assert [f.index for f in choose(faces, selection, {}, DLIB)] == sorted(set(wanted))
    else:
        with pytest.raises(Problem) as caught:
            choose(faces, selection, {}, DLIB)
        assert caught.value.code == "no_such_face"


def test_a_missing_index_is_answered_with_the_faces_that_there_are():
    with pytest.raises(Problem) as caught:
        choose([face(0), face(1, side=7)], Selection.parse("index:1,2,5"), {}, DLIB)
    assert "2, 5" in caught.value.detail
    assert caught.value.extra["faces"] == [
        {"index": 0, "box": [0.0, 5.0, 10.0, 15.0]},
        {"index": 1, "box": [20.0, 5.0, 27.0, 12.0]},
    ]


@pytest.mark.parametrize("text", ["all", "largest", "index:0", "like"])
def test_without_any_face_there_is_nothing_to_choose(text: str):
    with pytest.raises(Problem) as caught:
        choose([], Selection.parse(text), {"": at(0)}, DLIB)
    assert caught.value.code == "no_face"


def test_all_is_every_face():
    faces = [face(0), face(1), face(2)]
    assert choose(faces, Selection(), {}, DLIB) == faces


def test_the_largest_face_is_one_and_the_first_of_equals():
    faces = [face(0, side=10), face(1, side=30), face(2, side=30), face(3, side=29)]
    assert choose(faces, Selection(Way.LARGEST), {}, DLIB) == [faces[1]]


def test_like_takes_every_face_of_that_person_in_order():
    faces = [face(0, where=0.5), face(1, where=0.7), face(2, where=0.1)]
    assert choose(faces, Selection(Way.LIKE), {"": at(0)}, DLIB) == [faces[0], faces[2]]


@given(st.lists(st.floats(0, 2, width=32), min_size=1, max_size=8))
def test_like_chooses_exactly_those_below_the_threshold(distances: list[float]):
    faces = [face(i, where=where) for i, where in enumerate(distances)]
    near = [f for f, where in zip(faces, distances, strict=True) if where < DLIB.same_person]
    if near:
        assert choose(faces, Selection(Way.LIKE), {"": at(0)}, DLIB) == near
    else:
        with pytest.raises(Problem) as caught:
            choose(faces, Selection(Way.LIKE), {"": at(0)}, DLIB)
        assert caught.value.code == "no_match"
        got = [entry["distance"] for entry in caught.value.extra["faces"]]
        assert got == pytest.approx(distances, abs=1e-4)
        assert caught.value.extra["threshold"] == DLIB.same_person


def test_like_needs_a_reference():
    with pytest.raises(Problem) as caught:
        choose([face(0)], Selection(Way.LIKE), {}, DLIB)
    assert caught.value.code == "missing_field"
    assert caught.value.extra["field"] == "like"


NAMES = st.from_regex(f"(?!(?:[0-9]{{1,6}})$){NAME}", fullmatch=True)
MAPS = st.dictionaries(
    st.integers(0, 999_999) | NAMES, st.from_regex(NAME, fullmatch=True), min_size=1
)


@given(MAPS)
def test_a_map_is_read_as_it_was_written(wanted: dict[int | str, str]):
    selection = Selection.parse(",".join(f"{face}={source}" for face, source in wanted.items()))
    assert {pair.face: pair.source for pair in selection.pairs} == wanted
    assert len(selection.pairs) == selection.named == len(wanted)
    assert {*selection.places, *selection.likes} == {*selection.pairs}
    selection.check({*wanted.values()}, {face for face in wanted if isinstance(face, str)})


@pytest.mark.parametrize(
    ("sources", "likes", "field", "said"),
    [
        ({"a"}, {"x"}, "faces", "`b`"),
        ({"a", "b"}, set(), "faces", "`x`"),
        ({"a", "b", "c"}, {"x"}, "sources", "`c`"),
        ({"a", "b"}, {"x", "y"}, "likes", "`y`"),
    ],
)
def test_a_map_means_just_the_people_who_were_sent(sources, likes, field: str, said: str):
    with pytest.raises(Problem) as caught:
        Selection.parse("0=a,x=b,1=b").check(sources, likes)
    assert (caught.value.code, caught.value.extra["field"]) == ("bad_value", field)
    assert said in caught.value.detail


def cast(faces: list[Face], text: str, **references: np.ndarray) -> dict[int, str]:
    chosen = choose(faces, Selection.parse(text), references, DLIB)
    return {face.index: face.person for face in chosen}


def test_each_face_gets_the_source_that_is_put_onto_it():
    faces = [face(index) for index in range(4)]
    assert cast(faces, "3=a,0=b,2=a") == {0: "b", 2: "a", 3: "a"}
    with pytest.raises(Problem, match="no face 4, 7; the image has 4") as caught:
        cast(faces, "0=a,4=b,7=a")
    assert caught.value.code == "no_such_face"


def test_somebody_gets_the_source_of_the_nearest_reference_unless_the_face_is_named():
    faces = [face(0, where=0.0), face(1, where=0.3), face(2, where=0.5), face(3, where=2.0)]
    references = {"x": at(0.1), "y": at(0.6)}
    assert cast(faces, "x=a,y=b", **references) == {0: "a", 1: "a", 2: "b"}
    assert cast(faces, "x=a,y=b,0=c,3=b", **references) == {0: "c", 1: "a", 2: "b", 3: "b"}


def test_who_of_the_references_is_nowhere_is_known_and_a_problem_only_without_anybody():
    faces, references = [face(0, where=0.0)], {"x": at(0.1), "y": at(3)}
    assert cast(faces, "x=a,y=b", **references) == {0: "a"}
    assert missing(faces, Selection.parse("x=a,y=b"), references, DLIB) == ["y"]
    with pytest.raises(Problem) as caught:
        cast(faces, "y=b", **references)
    assert caught.value.code == "no_match"
    assert caught.value.extra["faces"][0]["distance"] == 3.0


@given(st.lists(st.floats(0, 2, width=32), min_size=1, max_size=6))
def test_one_person_for_all_is_a_map_of_all_faces_to_that_person(places: list[float]):
    faces = [face(index, where=where) for index, where in enumerate(places)]
    text = ",".join(f"{each.index}=a" for each in faces)
    everybody = choose(faces, Selection(), {}, DLIB)
    assert cast(faces, text) == {each.index: "a" for each in everybody}
