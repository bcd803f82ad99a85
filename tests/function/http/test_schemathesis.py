"""schemathesis against the OpenAPI document: requests made from it, answers checked against it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = Path(__file__).with_name("schemathesis.toml")


@pytest.mark.slow
def test_schemathesis_finds_nothing(live, tmp_path):
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "--config-file", CONFIG, "run", live.url + "/openapi.json"]
    done = subprocess.run(
        [*command, "--max-examples", "100", "--seed", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout
    assert "9 selected" in done.stdout
