"""A real Prometheus with recorded data, which end a little after now."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.error import URLError
from urllib.request import urlopen

from tests.keepalive.forecasting.weeks import weeks

AFTER = timedelta(minutes=20)
"""How long after they were recorded instant queries still find the last values."""

_IMPORT = ("tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=1000h")
"""It reads all of the file for each block, so there had better be few."""


@contextmanager
def prometheus(needs, folder, port, metrics, *options):
    """Where it answers.

    Args:
        needs: finds programs.
        folder: for its files.
        port: a free one.
        metrics: text in OpenMetrics, with times.
        options: of Prometheus.
    """
    server, tool = needs("prometheus"), needs("promtool")
    (folder / "recorded.txt").write_text(metrics)
    (folder / "none.yml").write_text("global: {}\n")
    made = subprocess.run(
        [tool, *_IMPORT, "recorded.txt", "data"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    words = [
        f"--web.listen-address=127.0.0.1:{port}",
        "--config.file=none.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=10y",
        *options,
    ]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([server, *words], cwd=folder, stderr=log, stdout=log) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(f"{url}/-/ready", process)
            yield url
        finally:
            process.terminate()


def wait_for(url, process):
    """Until the address answers."""
    for _ in range(300):
        assert process.poll() is None, "it has ended"
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def recorded(**layers):
    """OpenMetrics text of gauges, the last 30 minutes of each, a value a minute.

    Args:
        layers: by metric, a list of labels (in PromQL) and a value, or a function of minutes ago.
    """
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    lines = []
    for name, series in layers.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE {name.removesuffix('_total')} {kind}")
        for labels, value in series:
            for ago in range(30, -round(AFTER / timedelta(minutes=1)) - 1, -1):
                at = now - timedelta(minutes=ago)
                told = value(ago) if callable(value) else value
                lines.append(f"{name}{{{labels}}} {told} {at.timestamp():.0f}")
    return lines


def demand(count, **more):
    """OpenMetrics text of `ember_request_seconds` for weeks of demand, a value a minute."""
    end = datetime.now(UTC).replace(second=0, microsecond=0) + AFTER
    lines, total = ["# TYPE ember_request_seconds summary"], 0.0
    for point in weeks(count, end=end, **more):
        for minute in range(5):
            total += point.value * 60
            at = point.at + timedelta(minutes=minute)
            lines.append(
                f'ember_request_seconds_sum{{route="/v1/swap",namespace="ember"}} {total:.3f}'
                f" {at.timestamp():.0f}"
            )
    return lines


def text(*parts):
    """One text of the parts."""
    return "\n".join(line for part in parts for line in part) + "\n# EOF\n"
