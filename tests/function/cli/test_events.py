"""`ember events test`, with the very example of docs/events.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from function.background.events.outcome import OutcomeKind
from tests.function.background.events import forms

TEXT = (Path(__file__).parents[3] / "docs" / "events.md").read_text()
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
(SHOWN,) = re.findall(r"\$ ember events test upload.json\n(.*?)```", TEXT, re.DOTALL)
UPLOAD = forms.resource("uploads", "in/ann.jpg", 1732881600000001, metadata={"kind": "portrait"})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "events.toml").write_text(EXAMPLE)
    return tmp_path


def ember(folder, *words, code=0, **environ):
    done = subprocess.run(
        [sys.executable, "-m", "function", "events", "test", *words],
        env={**os.environ, "EMBER_EVENTS": str(folder / "events.toml"), **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout if not code else done.stdout + done.stderr


def test_it_says_what_the_documentation_shows(folder):
    (folder / "upload.json").write_bytes(forms.pushed(UPLOAD, id="1208")[1])
    assert ember(folder, "upload.json") == SHOWN


def test_it_says_why_a_rule_does_not_fit(folder):
    (folder / "upload.json").write_bytes(forms.structured(UPLOAD | {"name": "out/a.jpg"})[1])
    told = ember(folder, "upload.json", code=65)
    assert "no    portraits: the name does not begin with in/" in told
    assert "ignored: no rule fits." in told


def test_it_knows_outputs(folder):
    upload = forms.resource("swapped", "in/ann-swapped.jpg")
    (folder / "upload.json").write_bytes(forms.structured(upload)[1])
    assert "it is where the rule portraits puts its outputs" in ember(
        folder, "upload.json", code=65
    )


def test_it_takes_the_headers_of_binary_mode(folder):
    headers, body = forms.binary(UPLOAD)
    (folder / "upload.json").write_bytes(body)
    words = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    assert "  yes   portraits" in ember(folder, "upload.json", *words)


def test_it_explains_each_event_of_a_batch(folder):
    body = forms.batch(forms.structured(UPLOAD)[1], forms.structured(UPLOAD)[1])[1]
    (folder / "upload.json").write_bytes(body)
    assert ember(folder, "upload.json").count("  yes   portraits") == 2


def test_what_is_no_event_is_one_line(folder):
    (folder / "upload.json").write_text("{}")
    assert "lacks the attribute `id`" in ember(folder, "upload.json", code=65)


def test_rules_that_are_wrong_are_named(folder):
    (folder / "upload.json").write_bytes(forms.structured(UPLOAD)[1])
    (folder / "other.toml").write_text(EXAMPLE.replace("prefix", "prefx"))
    told = ember(folder, "upload.json", "--rules", "other.toml", code=78)
    assert "rule portraits: there is no member `prefx`" in told


def test_without_rules_it_says_how_to_name_them(folder):
    (folder / "upload.json").write_text("{}")
    assert "--rules" in ember(folder, "upload.json", code=2, EMBER_EVENTS="")


def test_a_server_does_not_start_with_rules_that_are_wrong(folder):
    (folder / "events.toml").write_text("[[rule]]\n")
    done = subprocess.run(
        [sys.executable, "-m", "function"],
        env={**os.environ, "EMBER_EVENTS": str(folder / "events.toml"), "EMBER_PORT": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 78
    assert "rule 1: `bucket` is missing" in done.stderr


def test_every_outcome_is_in_the_document():
    for kind in OutcomeKind:
        assert f"`{kind}`" in TEXT
