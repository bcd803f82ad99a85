"""When to try again: a decision that can be read off."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from warmup.retry import LONGEST_S, PROGRESS, Patience, Retry, retry_after


class Highest(random.Random):
    def uniform(self, a, b):
        return b


def test_the_wait_doubles_and_has_an_end():
    patience = Patience(20, Highest())
    waits = [patience.wait_s(0, 0) for _ in range(20)]
    assert waits[:4] == [0.5, 1, 2, 4]
    assert max(waits) == waits[-1] == LONGEST_S
    assert patience.wait_s(0, 0) is None


def test_the_jitter_covers_the_whole_wait():
    waits = []
    for seed in range(300):
        one = Patience(10, random.Random(seed), failures=3)
        waits.append(one.wait_s(0, 0))
    assert min(waits) < 0.2
    assert max(waits) > 3.8


def test_progress_begins_the_count_anew():
    patience = Patience(1, Highest())
    assert patience.wait_s(0, 0) == 0.5
    assert patience.wait_s(PROGRESS, 0) == 0.5
    assert patience.wait_s(PROGRESS - 1, 0) is None


def test_what_the_server_asks_is_the_least():
    assert Patience(1, Highest()).wait_s(0, 60) == 60.5
    assert Patience(1, Highest()).wait_s(0, 121) is None


def test_without_retries_the_first_failure_is_the_last():
    assert Patience(0).wait_s(0, 0) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0),
        ("", 0),
        ("soon", 0),
        ("-1", 0),
    ],
)
def test_retry_after_is_a_number_or_a_date(text, seconds):
    assert retry_after(text, datetime(2026, 1, 1, tzinfo=UTC)) == seconds


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
