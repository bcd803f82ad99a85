"""The cost line is found, followed when it moves, and never absurd."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.runtime.scheduling.cost import Cost


def learned(*batches):
    cost = Cost()
    for rows, seconds in batches:
        cost.observe(rows, seconds)
    return cost


def test_nothing_is_known_at_first():
    cost = Cost()
    assert (cost.known, cost.seconds(8)) == (False, 0)


def test_one_size_alone_says_what_a_row_costs_alone():
    cost = learned((1, 0.01), (1, 0.01))
    assert cost.known
    assert cost.seconds(4) == pytest.approx(0.04)


def test_two_sizes_show_the_line():
    cost = learned(*[(1, 0.012), (8, 0.026)] * 10)
    assert (cost.base, cost.slope) == (pytest.approx(0.010), pytest.approx(0.002))


def test_noise_averages_out():
    rng = random.Random(4)
    sizes = [rng.choice([1, 2, 4, 8]) for _ in range(400)]
    cost = learned(*((n, (0.010 + 0.002 * n) * rng.uniform(0.9, 1.1)) for n in sizes))
    for n in (1, 8):
        assert cost.seconds(n) == pytest.approx(0.010 + 0.002 * n, rel=0.1)


def test_a_device_that_slows_down_is_followed():
    cost = learned(*[(1, 0.012), (8, 0.026)] * 50, *[(1, 0.024), (8, 0.052)] * 50)
    assert cost.seconds(8) == pytest.approx(0.052, rel=0.05)


def test_the_slope_is_kept_while_all_batches_are_alike():
    cost = learned(*[(1, 0.012), (8, 0.026)] * 10, *[(1, 0.012)] * 500)
    assert cost.slope == pytest.approx(0.002)
    assert cost.seconds(8) == pytest.approx(0.026)


def test_a_million_batches_do_not_wear_it_out():
    cost = Cost()
    for n in range(1_000_000):
        rows = 1 + n % 8
        cost.observe(rows, 0.010 + 0.002 * rows)
    assert (cost.base, cost.slope) == (
        pytest.approx(0.010, abs=1e-9),
        pytest.approx(0.002, abs=1e-9),
    )


@given(st.lists(st.tuples(st.integers(1, 64), st.floats(0, 10)), min_size=1, max_size=60))
def test_no_batch_takes_less_than_nothing_nor_less_than_a_smaller_one(batches):
    cost = learned(*batches)
    assert cost.base >= 0
    assert cost.slope >= 0
    assert cost.seconds(1) <= cost.seconds(64)


def test_batches_of_one_size_do_not_show_what_of_it_is_the_base():
    cost = Cost()
    for _ in range(30):
        cost.observe(4, 1.0)
    assert (cost.known, cost.sloped) == (True, False)
    cost.observe(8, 1.5)
    assert cost.sloped
