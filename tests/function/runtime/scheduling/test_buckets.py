"""How many rows a batch takes: as many as pay, in time, in a size that was warmed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.cost import Cost

PADDED = Buckets((1, 4, 8), pads=True)
OPEN = Buckets((1, 4, 8))


def line(base, slope):
    cost = Cost()
    cost.base, cost.slope = base, slope
    return cost


FLAT = line(1.0, 0.01)  # a batch costs what one row costs
STEEP = line(0.0, 1.0)  # nothing is gained by batching


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (2, 4), (4, 4), (5, 8), (8, 8)])
def test_a_device_runs_only_sizes_that_were_warmed(rows, size):
    assert PADDED.padded(rows) == size
    assert OPEN.padded(rows) == rows


@pytest.mark.parametrize("buckets", [PADDED, OPEN])
@pytest.mark.parametrize(("waiting", "rows"), [(1, 1), (3, 3), (8, 8), (50, 8)])
def test_all_that_wait_are_taken_up_to_the_largest_size(buckets, waiting, rows):
    assert buckets.rows(waiting, FLAT, math.inf) == rows


@pytest.mark.parametrize(("waiting", "rows"), [(2, 1), (3, 1), (5, 4), (7, 4), (8, 8)])
def test_rows_of_zeros_are_not_paid_for_where_a_full_batch_is_cheaper(waiting, rows):
    assert PADDED.rows(waiting, STEEP, math.inf) == rows


def test_without_padding_there_is_nothing_to_pay_for():
    assert OPEN.rows(5, STEEP, math.inf) == 5


@pytest.mark.parametrize(("buckets", "rows"), [(PADDED, 4), (OPEN, 6)])
def test_a_batch_is_made_smaller_if_the_most_urgent_is_then_in_time(buckets, rows):
    assert buckets.rows(8, line(1.0, 1.0), 7.5) == rows


def test_who_cannot_be_in_time_does_not_make_it_smaller():
    assert OPEN.rows(8, line(1.0, 1.0), 0.5) == 8


def test_before_anything_is_known_all_are_taken():
    assert PADDED.rows(5, Cost(), 0.001) == 5


@pytest.mark.parametrize(("most", "sizes"), [(8, (1, 4, 8)), (7, (1, 4)), (4, (1, 4)), (0, (1,))])
def test_a_limit_takes_the_larger_sizes_away(most, sizes):
    assert PADDED.up_to(most) == Buckets(sizes, pads=True)


@given(
    st.sets(st.integers(1, 64), min_size=1),
    st.booleans(),
    st.integers(1, 200),
    st.floats(0, 5),
    st.floats(0, 5),
    st.floats(0, 100) | st.just(math.inf),
)
def test_what_is_chosen_can_be_run(sizes, pads, waiting, base, slope, slack):
    buckets = Buckets(tuple(sorted(sizes)), pads)
    rows = buckets.rows(waiting, line(base, slope), slack)
    assert 1 <= rows <= min(waiting, buckets.largest)
    assert rows <= buckets.padded(rows) <= buckets.largest


@pytest.mark.parametrize(("size", "next_"), [(1, 4), (4, 8), (8, 8), (5, 8)])
def test_the_next_larger_size(size, next_):
    assert PADDED.above(size) == next_
