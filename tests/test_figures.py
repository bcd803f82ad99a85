"""The figures of the documentation show what the code does."""

from __future__ import annotations

from tests.figures import batching


def test_the_figure_of_batching_is_up_to_date():
    assert batching.FILE.read_text() == batching.svg()


def test_it_shows_what_the_text_says():
    batching.svg()
    alone = batching.REQUESTS[0]
    (large,) = [each for each in batching.REQUESTS if each.items == 6]
    assert alone.runs[0][0] == alone.at
    assert [items for *_, items in large.runs] == [2, 4]
    assert [each.gone for each in batching.REQUESTS if not each.runs] == [7]
