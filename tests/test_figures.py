"""The figures of the documentation show what the code does."""

from __future__ import annotations

from tests.figures import batching, rooms


def test_the_figure_of_batching_is_up_to_date():
    assert batching.FILE.read_text() == batching.svg()


def test_it_shows_what_the_text_says():
    batching.svg()
    alone = batching.REQUESTS[0]
    (large,) = [each for each in batching.REQUESTS if each.items == 6]
    assert alone.runs[0][0] == alone.at
    assert [items for *_, items in large.runs] == [2, 4]
    assert [each.gone for each in batching.REQUESTS if not each.runs] == [7]


def test_the_picture_of_the_rooms_is_up_to_date():
    assert rooms.FILE.read_text() == rooms.svg()


def test_every_room_is_in_the_picture_and_none_that_is_not_there():
    drawn = {room.path for room in rooms.ROOMS}
    assert all((rooms.ROOT / path / "__init__.py").is_file() for path in drawn)
    folders = {path.parent for path in (rooms.ROOT / "function").glob("*/__init__.py")}
    assert {f"function/{folder.name}" for folder in folders} <= drawn
    assert {path for path, _ in rooms.STEPS} <= drawn
