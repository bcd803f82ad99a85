"""docs/http.md says what the code does: every name in it is checked against the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import function
from function.http.connection import KEEPALIVE_S
from function.http.multipart import MAX_PARTS
from function.http.tables import FACES, SWAP
from function.settings import Settings
from warmup.settings.variables import variables

from .test_codes import MEMBERS

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "http.md").read_text()


def test_every_address_is_in_the_document_and_no_other(live):
    calls = {
        f"{route.method} {route.resource.canonical}"
        for route in live.server.app.router.routes()
        if route.method != "HEAD" and "/{file}" not in route.resource.canonical
    }
    assert set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`?]*)`", TEXT)) == calls


def test_every_field_is_in_the_document():
    for name in {**SWAP, **FACES}:
        assert f"`{name}`" in TEXT


def test_every_metric_is_in_the_document_and_no_other(live):
    text = live.get("/metrics").body.decode()
    served = {
        name + ("_total" if kind == "counter" and not name.endswith("_total") else "")
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
        if not name.endswith("_created")
    }
    told = (DOCS / "metrics.md").read_text()
    assert set(re.findall(r"^\| `(ember_\w+)`", told, re.MULTILINE)) == served


def test_settings_and_members_in_the_document_exist():
    known = {item.name for item in variables(Settings)}
    assert set(re.findall(r"EMBER_\w+", TEXT)) <= known
    for members in MEMBERS.values():
        for name in members.keys() - {"hint"}:
            assert f"`{name}`" in TEXT


def test_every_member_that_a_problem_can_have_is_in_the_document():
    keywords = {
        keyword.arg
        for path in Path(function.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem"
        for keyword in node.keywords
    }
    assert {"field", "cut_short", "threshold"} <= keywords
    listed = TEXT[TEXT.index("## Problems") :]
    assert {name for name in keywords - {"headers", None} if f"`{name}`" not in listed} == set()


def test_numbers_in_the_document_are_those_of_the_code():
    assert f"have {KEEPALIVE_S:.0f} seconds" in " ".join(TEXT.split())
    assert f"At most {MAX_PARTS} parts" in TEXT
    assert f"1 to {SWAP['source'].most} photos" in TEXT
