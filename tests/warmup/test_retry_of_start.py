"""Pauses double up to a limit, and end when the time is over."""

from __future__ import annotations

import pytest

from warmup.retry import Retry


def test_pauses_double_up_to_the_longest():
    retry = Retry(total_s=1000)
    assert [retry.pause(n, 0) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_very_many_failures_are_no_problem():
    assert Retry(total_s=1000).pause(10**9, 0) == 30


@pytest.mark.parametrize(("since", "pause"), [(0, 4), (6, 4), (6.1, None), (100, None)])
def test_no_try_begins_after_the_total_time(since, pause):
    assert Retry(total_s=10).pause(3, since) == pause


def test_no_time_means_no_second_try():
    assert Retry(total_s=0).pause(1, 0) is None
