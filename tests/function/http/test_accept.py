"""Content negotiation by itself."""

from __future__ import annotations

import pytest

from function.http.accept import best, parse
from function.problems import Problem

IMAGE_FIRST = ["image/jpeg", "image/webp", "application/json"]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ([], "image/jpeg"),
        (["*/*"], "image/jpeg"),
        (["image/*"], "image/jpeg"),
        (["application/json"], "application/json"),
        (["application/json, text/plain, */*"], "application/json"),
        (["application/*"], "application/json"),
        (["IMAGE/WebP"], "image/webp"),
        (["image/webp;q=0.5, image/jpeg;q=0.4"], "image/webp"),
        (["image/webp;q=0.4, image/*;q=0.5"], "image/jpeg"),
        (["image/jpeg;q=0, */*"], "image/webp"),
        (["image/*;q=0, */*"], "application/json"),
        (["text/html", "image/webp"], "image/webp"),
        (["image/webp;level=1;q=0.3, application/json;q=0.2"], "image/webp"),
        (["image/webp;q=high, application/json;q=0.2"], "application/json"),
        (["application/octet-stream"], "image/jpeg"),
        (["application/octet-stream;q=0, */*"], "application/json"),
        (["application/octet-stream, application/json;q=0.9"], "image/jpeg"),
        ([""], "image/jpeg"),
        (["nonsense, */json"], "image/jpeg"),
    ],
)
def test_the_most_wanted_offer_wins(accept, wanted):
    assert best(parse(accept), IMAGE_FIRST) == wanted


@pytest.mark.parametrize("accept", ["text/html", "image/png", "*/*;q=0", "image/*;q=0.0"])
def test_nothing_possible_is_said_with_the_offers(accept):
    with pytest.raises(Problem) as raised:
        best(parse([accept]), IMAGE_FIRST)
    assert raised.value.code == "not_acceptable"
    assert raised.value.extra["available"] == IMAGE_FIRST
