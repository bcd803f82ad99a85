"""`ember deny` and `ember consent`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from function.cli import lists
from function.cli.consent import consent
from function.cli.deny import deny
from function.cli.failure import Failure
from function.exits import Exit
from function.trust.gate.identity_list import parse
from tests.scenes import PHOTOS, ROOT

COLLINS, HOPPER = ROOT / PHOTOS[2], ROOT / PHOTOS[3]
NOW = datetime.now(UTC)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where both lists are, and the audit of the commands."""
    monkeypatch.setenv("EMBER_DENY_LIST", str(tmp_path / "list.jsonl"))
    monkeypatch.setenv("EMBER_CONSENT_LIST", str(tmp_path / "list.jsonl"))
    (tmp_path / "audit").mkdir()
    monkeypatch.setenv("EMBER_AUDIT", (tmp_path / "audit").as_uri())
    return tmp_path / "list.jsonl"


def run(group, *words, code=0):
    done = CliRunner().invoke(group, list(map(str, words)))
    if isinstance(done.exception, Failure):
        assert done.exception.exit_code == code
        return str(done.exception)
    assert done.exit_code == code, done.output + repr(done.exception)
    return done.output.strip()


def audited(path):
    lines = [
        json.loads(line)
        for file in (path.parent / "audit").rglob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    lines.sort(key=lambda line: line["at"])  # each command has a chain of its own
    return [line for line in lines if line["kind"] in {"deny_list", "grant", "revocation"}]


def test_somebody_is_put_on_listed_and_taken_off(path):
    id_ = run(deny, "add", "--reason", "asked by mail", COLLINS)
    (person,) = parse(path.read_bytes()).people
    assert (person.id, person.label, person.until) == (id_, "asked by mail", None)
    assert person.model.family == "face_identity_128"
    assert run(deny, "ls").split(maxsplit=4)[0] == id_
    entry = json.loads(run(deny, "ls", "--json"))
    assert (entry["photos"], entry["label"]) == (1, "asked by mail")
    assert "embeddings" not in entry
    run(deny, "rm", id_)
    assert run(deny, "ls") == ""
    assert [line["details"]["change"] for line in audited(path)] == ["added", "removed"]
    assert {line["details"]["person"] for line in audited(path)} == {id_}
    assert "asked by mail" not in str(audited(path))


def test_consent_has_an_end_and_can_be_taken_back(path):
    id_ = run(consent, "add", "--subject", "Ada, contract 12", "--until", "2099-06-30", HOPPER)
    (person,) = parse(path.read_bytes()).people
    assert person.until == datetime(2099, 6, 30, tzinfo=UTC)
    assert "until 2099-06-30" in run(consent, "ls")
    run(consent, "rm", id_)
    assert [line["kind"] for line in audited(path)] == ["grant", "revocation"]
    assert "--until" in run(consent, "add", "--subject", "x", HOPPER, code=2)
    words = ("add", "--subject", "x", "--until", "2020-01-01", HOPPER)
    assert "is over" in run(consent, *words, code=2)


def test_what_has_ended_is_listed_as_such(path, capsys):
    run(consent, "add", "--subject", "Ada", "--until", "2099-06-30", HOPPER)
    lists.show(path.as_uri(), datetime(2100, 1, 1, tzinfo=UTC), as_json=False)
    assert "ended 2099-06-30" in capsys.readouterr().out


def test_photos_show_one_person_and_the_same(path, tmp_path):
    blank, both = tmp_path / "blank.png", tmp_path / "both.png"
    Image.new("RGB", (64, 64)).save(blank)
    pair = [np.asarray(Image.open(each).convert("RGB"))[:512, :512] for each in (COLLINS, HOPPER)]
    Image.fromarray(np.hstack(pair)).save(both)
    for photos, says in (
        ([blank], "no face"),
        ([both], "more than one face"),
        ([COLLINS, HOPPER], "different people"),
    ):
        assert says in run(deny, "add", "--reason", "x", *photos, code=Exit.BAD_INPUT)
    assert not path.exists()
    assert audited(path) == []


def test_nobody_who_is_not_there_is_taken_off(path):
    assert "Nobody" in run(deny, "rm", "3f9c", code=Exit.BAD_INPUT)
    assert audited(path) == []


def test_a_damaged_list_is_named_and_stays(path):
    path.write_text("{")
    assert "line 1" in run(deny, "ls", code=Exit.BAD_INPUT)
    assert "line 1" in run(deny, "add", "--reason", "x", COLLINS, code=Exit.BAD_INPUT)
    assert path.read_text() == "{"


def test_without_a_list_nothing_is_done(monkeypatch):
    monkeypatch.delenv("EMBER_DENY_LIST", raising=False)
    assert "EMBER_DENY_LIST is not set" in run(deny, "ls", code=Exit.CONFIG)
