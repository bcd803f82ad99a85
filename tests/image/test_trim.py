"""The list of cuts stays true."""

from __future__ import annotations

import pytest

from image.trim import trim


@pytest.fixture
def tree(tmp_path):
    """What two wheels might have left."""
    for name in (
        "bin/tool",
        "multidict-1.0.dist-info/METADATA",
        "multidict-1.0.dist-info/RECORD",
        "multidict/__init__.py",
        "multidict/_testcapi.so",
        "other/__init__.py",
        "other/tests/test_it.py",
        "other/fast.pyx",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


def files(tree):
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}


def test_what_nothing_loads_goes(tree):
    trim(tree)
    assert files(tree) == {
        "multidict-1.0.dist-info/METADATA",
        "multidict/__init__.py",
        "other/__init__.py",
    }


def test_a_cut_that_meets_nothing_is_an_error(tree):
    (tree / "multidict/_testcapi.so").unlink()
    with pytest.raises(LookupError, match=r"multidict has no multidict/_testcapi\.\*: mend"):
        trim(tree)
