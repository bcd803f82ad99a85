"""`make gpu-check` works, as far as that can be seen without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu import device

ROOT = Path(__file__).parents[2]


def run(*words):
    command = [sys.executable, "-m", "tests.gpu", *words]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )


def test_without_a_gpu_it_says_so_and_reports_nothing(tmp_path):
    try:
        device.check(0)
    except NotOnDeviceError:
        pass
    else:
        pytest.skip("is about machines without a GPU")
    report = tmp_path / "report.json"
    done = run("--report", str(report))
    assert done.returncode == 69
    assert done.stderr.startswith("gpu-check: nothing was checked: no NVIDIA driver can be used")
    assert not report.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("rtx")
def test_a_rehearsal_goes_through_every_step(tmp_path):
    report = tmp_path / "report.json"
    done = run("--rehearse", "--report", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(report.read_text())
    assert facts["rehearsal"]
    assert {name: step["state"] for name, step in facts["steps"].items()} == dict.fromkeys(
        ["numbers", "plans", "batches", "first_request", "swap_over"], "ok"
    )
    assert facts["steps"]["swap_over"]["failed"] == 0


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_on_a_gpu_nothing_fails(tmp_path):
    done = run("--report", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stdout + done.stderr
