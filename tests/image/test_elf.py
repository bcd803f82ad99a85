"""Cutting symbols off compiled modules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import frozenlist._frozenlist as module
import pytest

from image.elf import forget, needed, strip

BUILT = Path(module.__file__)


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copy(BUILT, tmp_path))


def works(path):
    """Whether another process can use the module."""
    code = (
        "import importlib.util as u, sys;"
        "spec = u.spec_from_file_location('frozenlist._frozenlist', sys.argv[1]);"
        "module = u.module_from_spec(spec); spec.loader.exec_module(module);"
        "print(list(module.FrozenList([1, 2])))"
    )
    words = [sys.executable, "-c", code, path]
    return subprocess.run(words, capture_output=True, check=False).stdout == b"[1, 2]\n"


def test_a_module_that_lost_its_symbols_still_works(copy):
    gone = strip(copy)
    assert gone > 1000
    assert copy.stat().st_size == BUILT.stat().st_size - gone
    assert works(copy)


def test_there_is_nothing_more_to_cut_then(copy):
    strip(copy)
    assert strip(copy) == 0


def test_what_is_no_elf_file_stays_as_it_is(tmp_path):
    path = tmp_path / "text.so"
    path.write_text("GROUP ( libc.so.6 )")
    assert strip(path) == 0
    assert path.read_text() == "GROUP ( libc.so.6 )"


def test_a_library_that_is_forgotten_is_not_named_any_more(copy):
    before = needed(copy)
    forget(copy, "libpthread.so.0")  # the C library has had its functions since 2.34
    assert needed(copy) == [name for name in before if name != "libpthread.so.0"]
    assert works(copy)


def test_one_that_is_not_named_is_an_error(copy):
    with pytest.raises(LookupError, match=r"does not name libcurand\.so\.10"):
        forget(copy, "libcurand.so.10")
