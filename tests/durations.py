"""What each suite of tests costs, against what it cost when that was written down last.

Costs are seconds of CPU, of the test's process and of the programs that it has waited for, so they
are much the same on a busy machine. A suite is a folder; its budget is half as much again as what
`durations.toml` has of its files, which `make durations` writes. Nothing fails for being slow: the
table after the last test shows who has to do something about it. With `--fast`, files that cost
more than a second are left out.
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

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("durations.toml")
FAST_S = 1.0
ROOM, LEAST_S = 1.5, 5.0
_CPU = "cpu_s"
_BEGAN: pytest.StashKey[float] = pytest.StashKey()
_SLOW: pytest.StashKey[set[str]] = pytest.StashKey()


def suite(file: str) -> str:
    """The folder that a file counts for: `tests/image`, or one more below a package's folder."""
    parts = file.split("/")[:-1]
    return "/".join(parts[: 3 if parts[1:2] and (ROOT / parts[1]).is_dir() else 2])


def written() -> dict[str, float]:
    """What files have cost, in seconds of CPU."""
    return tomllib.loads(FILE.read_text())


def budgets() -> dict[str, float]:
    """What suites may cost, in seconds of CPU."""
    spent: Counter[str] = Counter()
    for file, cost in written().items():
        spent[suite(file)] += cost
    return {name: max(LEAST_S, ROOM * cost) for name, cost in spent.items()}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out files that cost seconds")
    parser.addoption("--write-durations", action="store_true", help=f"write {FILE.name}")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SLOW] = (
        {file for file, cost in written().items() if cost > FAST_S}
        if config.getoption("--fast")
        else set()
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    known = ROOT in collection_path.parents
    name = collection_path.relative_to(ROOT).as_posix() if known else ""
    return True if name in config.stash[_SLOW] else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEGAN] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "teardown":  # workers of xdist send this along
        report.user_properties.append((_CPU, _cpu_s() - item.stash[_BEGAN]))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    files: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":
                file = report.nodeid.partition("::")[0]
                files[file] += dict(report.user_properties).get(_CPU, 0.0)
                tests[suite(file)] += 1
    if not files:
        return
    if config.getoption("--write-durations"):
        head = "# Seconds of CPU for each file; `make durations` writes this.\n"
        lines = (f'"{file}" = {round(files[file], 1)}\n' for file in sorted(files))
        FILE.write_text("".join([head, *lines]))
    spent: Counter[str] = Counter()
    for file, cost in files.items():
        spent[suite(file)] += cost
    allowed = budgets()
    terminalreporter.section("seconds of CPU for each suite")
    for name, cost in spent.most_common():
        budget = allowed.get(name, LEAST_S)
        over = "  over its budget" if cost > budget else ""
        line = f"{name:32} {tests[name]:5} tests {cost:7.1f} of {budget:5.0f}{over}"
        terminalreporter.line(line)
    terminalreporter.line(f"{'in all':32} {tests.total():5} tests {spent.total():7.1f}")


def _cpu_s() -> float:
    """Seconds of CPU so far, of this process and of the children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
