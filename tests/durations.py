"""What each suite of tests costs, against what it may cost; printed after the last test.

Costs are seconds of CPU, of the test's process and of the programs that it has waited for, so they
are the same on a busy machine. A suite is a folder. Nothing fails for being slow: the table shows
who has to do something about it.
"""

from __future__ import annotations

import resource
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUDGETS = Path(__file__).with_name("durations.toml")
_CPU = "cpu_s"


def _cpu_s() -> float:
    """Seconds of CPU so far, of this process and of the children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def suite(nodeid: str) -> str:
    """The folder that a test counts for: `tests/image`, or one more below a package's folder."""
    parts = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(parts[: 3 if parts[1:2] and parts[1] in _packages() else 2])


def _packages() -> set[str]:
    return {"function", "warmup", "keepalive"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEGAN] = _cpu_s()
    return (yield)


_BEGAN: pytest.StashKey[float] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "teardown":  # workers of xdist send this along
        report.user_properties.append((_CPU, _cpu_s() - item.stash[_BEGAN]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":
                spent[suite(report.nodeid)] += dict(report.user_properties).get(_CPU, 0.0)
                tests[suite(report.nodeid)] += 1
    if not spent:
        return
    budgets = tomllib.loads(_BUDGETS.read_text())
    terminalreporter.section("seconds of CPU for each suite")
    for name in sorted(spent, key=spent.__getitem__, reverse=True):
        budget = budgets.get(name, budgets["other"])
        over = "  over its budget" if spent[name] > budget else ""
        terminalreporter.line(
            f"{name:36} {tests[name]:5} tests {spent[name]:7.1f} of {budget:4}{over}"
        )
    terminalreporter.line(f"{'in all':36} {tests.total():5} tests {spent.total():7.1f}")
