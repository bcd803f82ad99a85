"""A class name stands for one thing in the whole code."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent

SEVERAL = {
    "Exit": "keepalive may not import function; both have BSD's exit codes",
    "Failure": "keepalive may not import function; both end a command with a message and a code",
}
"""Names that several classes have, and why."""


def defined() -> dict[str, list[str]]:
    """The files that define each class; private ones are known in their file only."""
    files = defaultdict(list)
    for package in ("function", "warmup", "keepalive"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(str(path.relative_to(ROOT)))
    return files


def test_no_class_has_the_name_of_another_without_a_reason():
    doubles = {name: files for name, files in defined().items() if len(files) > 1}
    assert {name: files for name, files in doubles.items() if name not in SEVERAL} == {}


def test_every_exception_is_still_one():
    classes = defined()
    assert [name for name in SEVERAL if len(classes.get(name, ())) < 2] == []
