"""`ember forecast`: from a real Prometheus and from files, to tables and pictures."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from keepalive.cli import commands
from tests.keepalive.forecasting.weeks import weeks
from tests.keepalive.recorded import demand, prometheus, text
from tests.running import unused_port


@pytest.fixture(scope="module")
def url(needs, tmp_path_factory):
    port = unused_port()
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus(needs, folder, port, text(demand(6))) as found:
        yield found


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Five weeks in a file."""
    path = tmp_path_factory.mktemp("csv") / "demand.csv"
    lines = [f"{point.at.isoformat()},{point.value:.4f}" for point in weeks(5)]
    path.write_text("\n".join(["time,requests", *lines]))
    return path


def run(*words):
    return CliRunner().invoke(commands, ["forecast", *map(str, words)], catch_exceptions=False)


class TestBacktest:
    def test_it_compares_ways_to_expect(self, url):
        done = run("backtest", f"--prometheus={url}", "--timezone=Europe/Berlin", "--days=2")
        assert done.exit_code == 0, done.stderr
        head, _, forecast, last_week, before, band = done.stdout.splitlines()
        assert head == "577 of 577 forecasts, 12 minutes ahead:"
        errors = [float(line.split("%")[0].split()[-1]) for line in (forecast, last_week, before)]
        assert errors[0] < errors[1]
        assert errors[0] < errors[2]
        assert band.endswith("not above.")

    def test_json_has_the_same(self, history):
        words = ("--timezone=Europe/Berlin", "--days=1", "--lead=15", "--json")
        told = json.loads(run("backtest", f"--csv={history}", *words).stdout)
        assert told["rows"] == told["asked"] == 289
        assert told["forecast"]["error"] < told["last_week"]["error"]
        assert 0.8 < told["inside"] <= told["covered"] <= 1

    @pytest.mark.parametrize("ending", ["png", "svg"])
    def test_a_picture_is_drawn(self, history, tmp_path, ending):
        path = tmp_path / f"backtest.{ending}"
        done = run("backtest", f"--csv={history}", "--days=1", f"--plot={path}")
        assert done.exit_code == 0, done.stderr
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
        assert len(content) > 10_000

    def test_a_picture_that_cannot_be_written_is_told(self, history, tmp_path):
        for path in (tmp_path / "none" / "x.png", tmp_path / "x.odd"):
            done = run("backtest", f"--csv={history}", "--days=1", f"--plot={path}")
            assert done.exit_code == 74
            assert f"{path} cannot be written" in done.stderr

    def test_matplotlib_is_loaded_for_pictures_only(self, history):
        code = (
            "import sys; from keepalive.cli import commands;"
            f"words = ['forecast', 'backtest', '--csv={history}', '--days=1'];"
            "commands(words, standalone_mode=False);"
            "sys.exit('matplotlib' in sys.modules or 'numpy' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
        assert done.returncode == 0, done.stderr


class TestShow:
    def test_it_says_what_to_expect(self, history):
        done = run("show", f"--csv={history}", "--timezone=Europe/Berlin", "--hours=2")
        head, *rows = done.stdout.splitlines()
        assert head.split() == ["time", "expected", "low", "high", "requests", "at", "once"]
        assert [row[:16] for row in rows[::3]] == [
            "2026-11-30 13:15",
            "2026-11-30 14:00",
            "2026-11-30 14:45",
        ]
        for row in rows:
            expected, low, high = map(float, row[16:].split())
            assert low <= expected <= high

    def test_json_has_a_line_for_each_quarter(self, url):
        done = run("show", f"--prometheus={url}", "--hours=1", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(rows) == 4
        assert rows[0]["weeks"] == 4


class TestWrong:
    def test_thin_data_are_told(self, tmp_path):
        (tmp_path / "short.csv").write_text("2026-11-30T12:00:00Z,1\n2026-11-30T12:05:00Z,2\n")
        for word in ("show", "backtest"):
            done = run(word, f"--csv={tmp_path}/short.csv")
            assert done.exit_code == 75
            assert "three weeks at least are needed" in done.stderr

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("", "has no line of a time and a number"),
            ("time,value", "has no line of a time and a number"),
            ("time,value\n1,2\nx,3", "line 3: a time and a number are needed"),
            ("1,2\n3", "line 2: a time and a number are needed"),
            ("1,2\n1e99,3", "line 2: a time and a number are needed"),
        ],
    )
    def test_a_file_of_something_else_is_told(self, tmp_path, content, told):
        (tmp_path / "odd.csv").write_text(content)
        done = run("show", f"--csv={tmp_path}/odd.csv")
        assert done.exit_code == 78
        assert told in done.stderr

    def test_what_is_given_wrongly_is_told(self, history, tmp_path, free_port):
        assert run("show").exit_code == 2
        assert run("show", f"--csv={history}", "--prometheus=http://x").exit_code == 2
        done = run("show", f"--csv={tmp_path}/none.csv")
        assert (done.exit_code, "No such file" in done.stderr) == (78, True)
        done = run("show", f"--csv={history}", "--timezone=Mars/Olympus")
        assert (done.exit_code, "'Mars/Olympus' is not known" in done.stderr) == (78, True)
        done = run("backtest", f"--prometheus=http://127.0.0.1:{free_port}")
        assert (done.exit_code, "does not answer" in done.stderr) == (69, True)
