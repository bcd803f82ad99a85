"""What `make install` brings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


@pytest.mark.parametrize("extra", ["cli", "heic", "k8s"])
def test_it_has_what_commands_of_the_readme_import(extra):
    """`ember doctor`, `ember rollout` and `make deploy` work after it, without another word."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {NAME.match(one).group() for one in project["optional-dependencies"][extra]}
    locked = (ROOT / "locks/run.txt").read_text()
    assert wanted <= set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))


def test_it_is_locked_for_these():
    makefile = (ROOT / "Makefile").read_text()
    (command,) = re.findall(r"^\t(.*) -o locks/run\.txt$", makefile, re.MULTILINE)
    assert re.findall(r"--extra (\w+)", command) == ["cli", "heic", "k8s"]
