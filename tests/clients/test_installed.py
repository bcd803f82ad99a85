"""The Python client as a wheel, in a fresh environment outside the checkout, by the documents."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from zipfile import ZipFile

import pytest

from tests.clients.photos import COLLINS, HOPPER
from tests.installs import ROOT, Linked

FOLDER = ROOT / "clients/python"
PIP = (sys._base_executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
DOCUMENTS = [ROOT / "README.md", FOLDER / "README.md", *sorted((ROOT / "docs").glob("clients.md"))]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        FOLDER, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build")
    )
    command = (*PIP, "--python", sys.executable, "wheel", "--no-deps", "--no-build-isolation")
    subprocess.run([*command, "--wheel-dir", folder, folder / "source"], check=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    wanted = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["dependencies"]
    linked = Linked(tmp_path_factory.mktemp("linked"))
    program = linked.put(linked.needed(wanted)[0], folder) / "python"
    subprocess.run([*PIP, "--python", program, "install", "--no-index", wheel], check=True)
    return program


def test_it_needs_httpx_and_says_that_it_has_types(wheel):
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        text = archive.read(metadata).decode()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"ember_client"}
    assert "ember_client/py.typed" in names
    assert re.findall(r"^Requires-Dist: ([\w-]+)", text, re.MULTILINE) == ["httpx"]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (path, place)
        for path in DOCUMENTS
        for place in range(len(EXAMPLE.findall(path.read_text())))
    ],
    ids=lambda value: value.name if hasattr(value, "name") else str(value),
)
def test_the_lines_of_documents_run(server, python, path, place, tmp_path):
    lines = EXAMPLE.findall(path.read_text())[place]
    for name, photo in (("me.jpg", HOPPER), ("portrait.jpg", COLLINS), ("group.jpg", COLLINS)):
        shutil.copy(photo, tmp_path / name)
    script = lines.replace("http://localhost:8080", server.url)
    done = subprocess.run(
        [python, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if ".save(" in lines:
        assert (tmp_path / "out.jpg").read_bytes().startswith(b"\xff\xd8")
