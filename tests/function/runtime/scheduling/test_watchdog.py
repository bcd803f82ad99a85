"""The watch knows the job that has been running for longest."""

from __future__ import annotations

import threading

import pytest

from function.runtime.scheduling.watchdog import ThreadWatchdog


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def watch(clock):
    return ThreadWatchdog(clock)


def test_without_a_job_there_is_nothing(watch):
    assert watch.longest_s == 0


def test_a_job_grows_older_until_it_ends(watch, clock):
    with watch.job():
        clock.now += 7
        assert watch.longest_s == 7
    assert watch.longest_s == 0


def test_a_job_that_fails_has_ended(watch):
    with pytest.raises(ValueError, match="no"), watch.job():
        raise ValueError("no")
    assert watch.longest_s == 0


def test_of_several_threads_the_oldest_job_counts(watch, clock):
    begun, end = threading.Event(), threading.Event()

    def hang():
        with watch.job():
            begun.set()
            end.wait(20)

    thread = threading.Thread(target=hang)
    thread.start()
    begun.wait(20)
    clock.now += 5
    for _ in range(3):
        with watch.job():
            clock.now += 1
    assert watch.longest_s == 8
    end.set()
    thread.join()
    assert watch.longest_s == 0


def test_a_job_inside_another_leaves_that_one_as_old_as_it_is(watch, clock):
    with watch.job():
        clock.now += 2
        with watch.job():
            clock.now += 1
            assert watch.longest_s == 1
        assert watch.longest_s == 3
    assert watch.longest_s == 0


def test_after_a_pause_a_job_begins_anew(watch, clock):
    with watch.job():
        clock.now += 2
        with watch.paused():
            clock.now += 2
            assert watch.longest_s == 0
        clock.now += 1
        assert watch.longest_s == 1
    assert watch.longest_s == 0
