"""The generated tables of docs/."""

from __future__ import annotations

import shutil

import pytest

from tests import docs


@pytest.fixture
def copy(tmp_path):
    for name in docs.TABLES:
        shutil.copy(docs.DOCS / name, tmp_path)
    return tmp_path


def test_a_table_that_is_not_up_to_date_fails_with_the_difference(copy, capsys):
    path = copy / "settings.md"
    path.write_text(path.read_text().replace("| `EMBER_HOST` |", "| `EMBER_HOUSE` |"))
    assert docs.main(["--check"], copy) == 1
    told = capsys.readouterr().err
    assert "-| `EMBER_HOUSE` |" in told
    assert "+| `EMBER_HOST` |" in told
    assert "make docs" in told


def test_writing_mends_it(copy):
    path = copy / "errors.md"
    before = path.read_text()
    path.write_text(before.replace("| `no_face` |", "| `no_nose` |"))
    assert docs.main([], copy) == 0
    assert path.read_text() == before
    assert docs.main(["--check"], copy) == 0


def test_a_table_without_a_place_is_an_error():
    with pytest.raises(ValueError, match="no place for the table `settings`"):
        docs.renewed("# Settings\n", docs.TABLES["settings.md"])


def test_every_problem_and_warning_is_in_the_docs():
    text = (docs.DOCS / "errors.md").read_text()
    assert all(f"| `{code}` |" in text for code in [*docs.KINDS, *docs.QualityWarning])
