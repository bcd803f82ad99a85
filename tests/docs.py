"""`python -m tests.docs` writes what follows from the code: docs/, openapi.json, the client.

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; everything else in the file is
written by hand. With `--check` nothing is written, and what is not up to date fails.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import function
from function.problems import KINDS
from function.process.wiring.admission import build_admission
from function.process.wiring.service import build_service
from function.quality_warning import QualityWarning
from function.settings import Settings, load
from function.telemetry.metrics import Metrics
from keepalive.doctor.pairs import BEFORE, LAST, NEEDS, REFUSED
from tests.openapi.document import document
from warmup.replica import Replica
from warmup.settings.variables import variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DOCS = Path(__file__).parents[1] / "docs"
OPENAPI = Path(function.__file__).parent / "http" / "openapi.json"
CLIENT = Path(__file__).parents[1] / "clients/python/ember_client/problems.py"


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


def warnings() -> str:
    """Every warning code."""
    return table(
        ("Code", "What it means"), ((f"`{code}`", code.meaning) for code in QualityWarning)
    )


def metrics() -> str:
    """Every metric."""
    defaults = load({})
    service = build_service(defaults)
    admission = build_admission(
        defaults.access, defaults.redis, defaults.requests, lambda: service.slots
    )
    described = Metrics(Replica(service), service, admission, lambda: False).described
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
        *((f"`{name}`", "last", why) for name, why in LAST.items()),
    )
    return table(("Component", "Not with, or in this order", "Why"), (*refused, *orders))


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "deploy.md": {"pairs": pairs},
    "settings.md": {"settings": settings},
    "metrics.md": {"metrics": metrics},
    "errors.md": {"problems": problems, "warnings": warnings},
}


def client_problems() -> str:
    """A module of the Python client: a class for each problem code."""
    text = '"""Every problem by its code; `make docs` writes this file."""\n\n'
    text += "from ember_client.errors import Problem\n"
    for code, kind in KINDS.items():
        name = code.title().replace("_", "")
        hint = "".join(f"    {line}\n" for line in textwrap.wrap(kind.hint, 92))
        text += f'\n\nclass {name}(Problem):\n    """{kind.title}.\n\n{hint}    """\n'
        text += f'\n    code = "{code}"\n'
    return text + "\n\nKINDS = {kind.code: kind for kind in Problem.__subclasses__()}\n"


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


def generated(docs: Path) -> Iterator[tuple[Path, str]]:
    """Each file that follows from the code, and the text that belongs there."""
    for name, tables in TABLES.items():
        yield docs / name, renewed((docs / name).read_text(), tables)
    yield OPENAPI, json.dumps(document(), indent=0) + "\n"
    yield CLIENT, client_problems()


def main(arguments: list[str] | None = None, docs: Path = DOCS) -> int:
    """Write or check all of it; 1 when the check finds something that is not up to date."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    stale = 0
    for path, after in generated(docs):
        before = path.read_text() if path.exists() else ""
        if before == after:
            continue
        if not check:
            path.write_text(after)
            continue
        stale = 1
        lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
        sys.stderr.writelines(difflib.unified_diff(*lines, path.name, "what the code says"))
    if stale:
        print("What follows from the code is not up to date: run `make docs`.", file=sys.stderr)
    return stale


if __name__ == "__main__":
    sys.exit(main())
