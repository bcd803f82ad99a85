"""`python -m tests.docs` writes the tables of docs/ that follow from the code.

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; everything else in the file is
written by hand. With `--check` nothing is written, and a table that is not up to date fails.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from function.problems import KINDS
from function.process.wiring.admission import build_admission
from function.process.wiring.service import build_service
from function.quality_warning import QualityWarning
from function.settings import Settings, load
from function.telemetry.metrics import Metrics
from keepalive.doctor.pairs import BEFORE, NEEDS, REFUSED
from warmup.replica import Replica
from warmup.settings.variables import variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DOCS = Path(__file__).parents[1] / "docs"


def settings() -> str:
    """Every `EMBER_*` variable."""
    return table(
        ("Variable", "Default", "Allowed", "Meaning"),
        (
            (
                f"`{item.name}`" + (f", else `{item.fallback}`" if item.fallback else ""),
                item.shown_default,
                item.reader.allowed,
                item.doc,
            )
            for item in variables(Settings)
        ),
    )


def problems() -> str:
    """Every problem code."""
    return table(
        ("Code", "Status", "What it means", "What to do"),
        ((f"`{code}`", str(kind.status), kind.title, kind.hint) for code, kind in KINDS.items()),
    )


def cautions() -> str:
    """Every warning code."""
    return table(
        ("Code", "What it means"), ((f"`{code}`", code.meaning) for code in QualityWarning)
    )


def metrics() -> str:
    """Every metric."""
    defaults = load({})
    service = build_service(defaults)
    parts = build_admission(
        defaults.access, defaults.redis, defaults.requests, lambda: service.places
    )
    described = Metrics(Replica(service), service, parts, lambda: False).described
    service.close()
    return table(
        ("Metric", "Type", "Labels", "What it means"),
        (
            (f"`{m.name}`", m.kind, ", ".join(f"`{label}`" for label in m.labels), m.doc)
            for m in described
        ),
    )


def pairs() -> str:
    """Components that do not go together, or only in one order."""
    none: dict[str, list[str]] = {}
    for (one, other), why in ((sorted(pair), why) for pair, why in REFUSED.items()):
        first, second = (other, one) if one == "qps-hpa" else (one, other)
        none.setdefault(f"`{second}` | {why}", []).append(f"`{first}`")
    refused = ((", ".join(sorted(names)), *rest.split(" | ")) for rest, names in none.items())
    orders = (
        *(
            (f"`{name}`", f"after `{', '.join(first)}`", "it changes it")
            for name, first in NEEDS.items()
        ),
        *((f"`{first}`", f"before `{second}`", why) for (first, second), why in BEFORE.items()),
    )
    return table(("Component", "Not with, or in this order", "Why"), (*refused, *orders))


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "deploy.md": {"pairs": pairs},
    "settings.md": {"settings": settings},
    "metrics.md": {"metrics": metrics},
    "errors.md": {"problems": problems, "warnings": cautions},
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def renewed(text: str, tables: dict[str, Callable[[], str]]) -> str:
    """The text with each of the tables written anew.

    Raises:
        ValueError: the place of a table is missing.
    """
    for name, write in tables.items():
        before, begin, rest = text.partition(f"<!-- begin {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->\n")
        if not end:
            raise ValueError(f"there is no place for the table `{name}`")
        text = f"{before}{begin}{write()}{end}{after}"
    return text


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    """Write or check every table; 1 when the check finds one that is not up to date."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    stale = 0
    for name, tables in TABLES.items():
        path = docs / name
        before = path.read_text()
        after = renewed(before, tables)
        if before == after:
            continue
        if not check:
            path.write_text(after)
            continue
        stale = 1
        lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
        sys.stderr.writelines(difflib.unified_diff(*lines, f"docs/{name}", "what the code says"))
    if stale:
        print("Generated tables are not up to date: run `make docs`.", file=sys.stderr)
    return stale


if __name__ == "__main__":
    sys.exit(main())
