"""Whatever the bytes, decoding ends in a picture or in a problem that it may cause."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function.images.decode import decode
from function.problems import Problem
from tests.function.images.odd_files import ODD_FILES

if TYPE_CHECKING:
    from function.images.picture import Picture

SEEDS = [odd for odd in ODD_FILES if odd.size[0] <= 48 and not odd.cut_short]
CODES = {"bad_image", "unsupported_media_type", "too_many_pixels"}

relaxed = partial(settings, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@cache
def seed(index: int) -> bytes:
    return SEEDS[index].build()[:200_000]


def check(data: bytes) -> None:
    try:
        outcome: Picture | Problem = decode(data, max_pixels=1_000_000)
    except Problem as problem:
        outcome = problem
    if isinstance(outcome, Problem):
        assert outcome.code in CODES
    else:
        height, width = outcome.pixels.shape[:2]
        assert 0 < width * height <= 1_000_000
        assert outcome.alpha is None or outcome.alpha.shape == (height, width)


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A file of the table with a few bytes replaced, removed, repeated or put in, mostly early."""
    data = bytearray(seed(draw(st.integers(0, len(SEEDS) - 1))))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, min(len(data), draw(st.sampled_from([64, 512, 1 << 20])))))
        stop = start + draw(st.integers(0, 16))
        new = draw(
            st.one_of(
                st.binary(max_size=16),
                st.sampled_from([b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0"]),
                st.just(bytes(data[start:stop]) * 3),
            )
        )
        data[start:stop] = new
    return bytes(data)


@relaxed(max_examples=300)
@given(mutations())
def test_a_damaged_file_is_a_picture_or_a_problem(data: bytes):
    check(data)


@relaxed()
@given(
    st.sampled_from(
        [
            b"",
            b"\xff\xd8\xff",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"GIF89a",
            b"BM",
            b"II*\0\x08\0\0\0",
            b"MM\0*\0\0\0\x08",
            b"RIFF\xff\0\0\0WEBPVP8 ",
            b"RIFF\xff\0\0\0WEBPVP8L",
            b"\0\0\0\x1cftypavif",
            b"\0\0\0\x1cftypheic",
        ]
    ),
    st.binary(max_size=600),
)
def test_random_bytes_are_a_picture_or_a_problem(start: bytes, rest: bytes):
    check(start + rest)


@pytest.mark.slow
@relaxed(max_examples=5000)
@given(mutations())
def test_a_damaged_file_is_a_picture_or_a_problem_at_length(data: bytes):
    check(data)
