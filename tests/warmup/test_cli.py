"""`ember verify`, also as `python -m warmup verify`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

MODELS = Path(str(files("function"))) / "models"


def verify(manifest):
    return subprocess.run(
        [sys.executable, "-m", "warmup", "verify", str(manifest)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def manifest(tmp_path):
    """A copy of the embedded models that may be damaged."""
    shutil.copytree(MODELS, tmp_path / "models")
    return tmp_path / "models" / "models.toml"


def test_good_files_are_listed(manifest):
    done = verify(manifest)
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", "detect:"],
        ["ok", "landmarks:"],
        ["ok", "identity:"],
    ]


def test_every_bad_file_is_named(manifest):
    (manifest.parent / "centerface.onnx").unlink()
    with (manifest.parent / "face_mesh_468.onnx").open("r+b") as file:
        file.write(b"x")
    done = verify(manifest)
    assert done.returncode == 65
    assert "bad  detect:" in done.stderr
    assert "bad  landmarks:" in done.stderr
    assert "ok   identity:" in done.stdout
    assert "2 of 3 models cannot be used." in done.stderr


def test_a_manifest_that_cannot_be_read_is_named(tmp_path):
    done = verify(tmp_path / "nowhere.toml")
    assert done.returncode == 65
    assert "nowhere.toml" in done.stderr
