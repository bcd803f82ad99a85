"""What `make install` brings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


@pytest.mark.parametrize("extra", ["cpu", "heic", "k8s"])
def test_it_has_what_commands_of_the_readme_import(extra):
    """`ember doctor`, `ember rollout` and `make deploy` work after it, without another word."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {NAME.match(one).group() for one in project["optional-dependencies"][extra]}
    locked = (ROOT / "locks/run.txt").read_text()
    assert wanted <= set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))


def test_it_is_locked_for_these():
    makefile = (ROOT / "Makefile").read_text()
    (command,) = re.findall(r"^\t(.*) -o locks/run\.txt$", makefile, re.MULTILINE)
    assert re.findall(r"--extra (\w+)", command) == ["cpu", "heic", "k8s"]


@pytest.mark.parametrize("lock", sorted(ROOT.glob("locks/image-*.txt")), ids=lambda path: path.stem)
def test_no_image_has_what_only_an_extra_needs(lock):
    """Their wheels have 31 MB of objects to link with, and parts under the GPL."""
    assert not re.findall(r"^(c2pa-python|av|pillow-heif)==", lock.read_text(), re.MULTILINE)


@pytest.mark.parametrize("lock", sorted(ROOT.glob("locks/image-*.txt")), ids=lambda path: path.stem)
def test_an_image_has_at_most_one_runtime(lock):
    function = (ROOT / "locks/image-function.txt").read_text()
    assert "onnxruntime" not in function
    assert len(re.findall(r"^onnxruntime(?:-\w+)?==", lock.read_text(), re.MULTILINE)) <= 1
