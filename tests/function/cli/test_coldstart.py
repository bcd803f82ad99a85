"""`ember coldstart`: fresh replicas, their timelines and the waterfall."""

from __future__ import annotations

import io
import json

from click.testing import CliRunner
from rich.console import Console

from function.cli.coldstart import Row, coldstart, medians, waterfall
from function.cli.failure import Failure


def timeline(*spans):
    keys = ("name", "start_s", "end_s")
    return {"spans": [dict(zip(keys, span, strict=True)) for span in spans]}


def drawn(rows, ready):
    out = io.StringIO()
    Console(file=out, width=120).print(waterfall(rows, ready))
    return out.getvalue().splitlines()[1:]


def test_medians_are_of_the_spans_that_every_start_has():
    found = [
        timeline(("warming", 4.0, 6.0), ("bind", 1.0, 2.0), ("load detect", 2.0, 3.0)),
        timeline(("bind", 2.0, 4.0), ("warming", 5.0, 9.0), ("verify detect", 1.0, 3.0)),
        timeline(("bind", 9.0, 9.0), ("warming", 6.0, 7.0)),
    ]
    assert medians(found) == [Row("bind", 2.0, 4.0), Row("warming", 5.0, 7.0)]


def test_bars_are_where_their_spans_are():
    lines = drawn([Row("loading", 0.0, 0.5), Row("warming", 0.5, 1.0), Row("bind", 0.9, 0.9)], 1.0)
    bars = [line.rstrip() for line in lines]
    left = bars[0].index("█")
    assert bars[0].count("█") == bars[1].count("█") == 16
    assert bars[1].index("█") == left + 16
    assert bars[2].endswith("▏")
    assert len(bars[2]) - 1 == left + 29


def test_what_the_platform_did_is_drawn_as_well():
    lines = drawn([Row("pod start", -1.0, 0.0), Row("loading", 0.0, 1.0)], 1.0)
    assert lines[0].index("█") + 16 == lines[1].index("█")
    assert "-1000" in lines[0]


def test_a_replica_is_started_and_ended(tmp_path):
    done = CliRunner().invoke(coldstart, ["-n", "1", "--json"], catch_exceptions=False)
    told = json.loads(done.output)
    names = {span["name"] for span in told["spans"]}
    assert {"interpreter", "bind", "import http", "loading", "warming", "golden"} < names
    assert 0 < told["spans"][-1]["end_s"] <= told["ready_s"][0]


def test_a_replica_that_fails_says_why(monkeypatch):
    monkeypatch.setenv("EMBER_MANIFEST", __file__)
    done = CliRunner().invoke(coldstart, ["-n", "1"])
    assert isinstance(done.exception, Failure)
    assert "test_coldstart.py" in str(done.exception)
