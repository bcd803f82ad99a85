"""API keys: made, kept as hashes, found, withdrawn."""

from __future__ import annotations

import pytest

from function.admission import keys
from function.admission.caller import Caller, RejectedError
from function.request_context import Lane
from warmup.settings.variables import SettingsError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys"


def write(path, *lines):
    new = path.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    new.replace(path)


async def test_a_key_is_known_by_its_line_and_the_file_does_not_have_it(path):
    (key, line), (other, more) = keys.new("ann", "paid"), keys.new("bob", "free", Lane.STANDARD)
    write(path, "# our keys", line + "  # Ann's", "", more)
    assert key not in path.read_text()
    assert key.split("_", 2)[2] not in path.read_text()
    found = keys.ApiKeys(path)
    assert await found.caller(key) == Caller("ann", "paid")
    assert await found.caller(other) == Caller("bob", "free", "standard")


async def test_any_other_key_is_rejected(path):
    key, line = keys.new("ann", "paid")
    write(path, line)
    found = keys.ApiKeys(path)
    changed = key[:-1] + ("A" if key[-1] != "A" else "B")
    for wrong in (keys.new("ann", "paid")[0], changed, key[:-1], key + "A", "", "nonsense", "ü"):
        with pytest.raises(RejectedError):
            await found.caller(wrong)


async def test_a_line_that_goes_takes_its_key_with_it(path):
    now = 0.0
    (key, line), (other, more) = keys.new("ann", "paid"), keys.new("bob", "free")
    write(path, line)
    found = keys.ApiKeys(path, clock=lambda: now)
    write(path, more)
    now = 2.0
    assert (await found.caller(other)).subject == "bob"
    with pytest.raises(RejectedError):
        await found.caller(key)


async def test_a_file_that_becomes_wrong_or_goes_changes_nothing(path, caplog):
    now = 0.0
    key, line = keys.new("ann", "paid")
    write(path, line)
    found = keys.ApiKeys(path, clock=lambda: now)
    write(path, "half a line")
    now = 2.0
    assert (await found.caller(key)).subject == "ann"
    path.unlink()
    now = 4.0
    assert (await found.caller(key)).subject == "ann"
    assert caplog.messages.count("the keys stay as they were") == 2


@pytest.mark.parametrize(
    "line",
    [
        "word",
        "0123456789ab " + "0" * 64 + " ann",
        "0123456789ab " + "0" * 63 + " ann paid",
        "0123456789AB " + "0" * 64 + " ann paid",
        "0123456789ab " + "0" * 64 + " ann paid express",
        "0123456789ab " + "0" * 64 + " ann paid bulk more",
        "0123456789ab " + "0" * 64 + " änn paid",
    ],
)
def test_a_line_that_makes_no_sense_is_named(path, line):
    write(path, keys.new("bob", "free")[1], line)
    with pytest.raises(SettingsError, match="keys, line 2, is not"):
        keys.ApiKeys(path)


def test_two_lines_with_one_id_are_a_mistake(path):
    _, line = keys.new("ann", "paid")
    write(path, line, line)
    with pytest.raises(SettingsError, match="line 2, has the id of an earlier line"):
        keys.ApiKeys(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match=f"{tmp_path} cannot be read: Is a directory"):
        keys.ApiKeys(tmp_path)
