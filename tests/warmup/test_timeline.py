"""The timeline begins when the kernel starts the process, and takes spans from any thread."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from warmup import timeline
from warmup.timeline import Timeline


def test_spans_are_in_the_order_of_their_starts_the_longer_first():
    line = Timeline()
    line.add("inner", 1.0, 2.0)
    line.add("outer", 1.0, 3.0)
    line.add("before", 0.0, 0.5)
    assert [span.name for span in line.spans] == ["before", "outer", "inner"]
    assert line.facts()[0] == {"name": "before", "start_s": 0.0, "end_s": 0.5}


def test_a_span_is_measured_also_when_its_body_fails():
    line = Timeline()
    with pytest.raises(ValueError, match="no"), line.span("load"):
        raise ValueError("no")
    (span,) = line.spans
    assert 0 < span.start <= span.end <= line.now()


def test_threads_lose_no_span():
    line = Timeline()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: line.add(str(n), n, n), range(1000)))
    assert [span.name for span in line.spans] == [str(n) for n in range(1000)]


def test_nothing_is_added_when_it_is_finished():
    line = Timeline()
    line.finish()
    with line.span("late"):
        pass
    assert line.spans == ()


def test_time_begins_before_the_first_line_of_python():
    """A process that is started after `before` and measures itself is as old as the kernel says."""
    code = (
        "import sys, time; time.sleep(0.3);"
        "from warmup.timeline import Timeline; print(Timeline().now())"
    )
    before = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    age = float(done.stdout)
    assert 0.3 < age < time.perf_counter() - before + 0.02  # the kernel counts in hundredths


def test_where_the_kernel_does_not_tell_time_begins_now(monkeypatch):
    monkeypatch.setattr(timeline, "Path", lambda _: Path("/nowhere"))
    assert Timeline().now() < 1


def test_what_the_platform_did_comes_before_the_process():
    line = Timeline()
    process = datetime.now(UTC) - timedelta(seconds=line.now())
    line.pod(process - timedelta(seconds=9), process - timedelta(seconds=4))
    spans = [(span.name, round(span.start, 1), round(span.end, 1)) for span in line.spans]
    assert spans == [("pod scheduling", -9, -4), ("pod start", -4, 0)]


@pytest.mark.parametrize(("created", "scheduled"), [(9, None), (None, 4), (None, None), (-60, -30)])
def test_what_is_not_known_of_the_platform_or_cannot_be_is_left_out(created, scheduled):
    line = Timeline()
    process = datetime.now(UTC) - timedelta(seconds=line.now())
    line.pod(*(None if s is None else process - timedelta(seconds=s) for s in (created, scheduled)))
    assert len(line.spans) == len([s for s in (created, scheduled) if s and s > 0])
