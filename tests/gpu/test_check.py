"""`make gpu-check` works, as far as that can be seen without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu import device
from tests.gpu import faulty
from tests.gpu.__main__ import main
from tests.gpu.check import Budget, Part, checked
from tests.gpu.parts import PARTS

ROOT = Path(__file__).parents[2]


def run(*words):
    command = [sys.executable, "-m", "tests.gpu", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def places(tmp_path):
    """Where the report goes, as words and as paths."""
    report, page = tmp_path / "out/check.json", tmp_path / "page.md"
    page.write_text(
        "# By hand\n\n<!-- begin check: written by make gpu-check -->\nold\n"
        "<!-- end check -->\n\nAlso by hand.\n"
    )
    return ("--report", str(report), "--page", str(page)), report, page


def test_without_a_gpu_it_says_so_and_reports_nothing(places):
    try:
        device.check(0)
    except NotOnDeviceError:
        pass
    else:
        pytest.skip("is about machines without a GPU")
    words, report, page = places
    done = run(*words)
    assert done.returncode == 69
    assert done.stderr.startswith("gpu-check: nothing was checked: no NVIDIA driver can be used")
    assert not report.exists()
    assert "old" in page.read_text()


def test_all_parts_together_take_less_than_five_minutes():
    assert sum(part.share_s for part in PARTS) <= 295


@pytest.mark.slow
@pytest.mark.usefixtures("rtx")
def test_a_rehearsal_goes_through_every_part(places):
    words, report, page = places
    done = run("--rehearse", "--times=20", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(report.read_text())
    assert facts["rehearsal"]
    assert list(facts["parts"]) == [part.name for part in PARTS]
    states = {name: part["state"] for name, part in facts["parts"].items()}
    assert states == dict.fromkeys(states, "rehearsed"), facts
    assert facts["parts"]["swap_over"]["failed"] == facts["parts"]["load"]["failed"] == 0
    assert facts["parts"]["out_of_memory"]["largest_then"] < 8
    assert facts["parts"]["killed_context"]["exit"] == 69
    text = page.read_text()
    assert "A rehearsal: no GPU could be had" in text
    assert all(f"\n### {name}\n\nrehearsed" in text for name in states)


def test_parts_that_go_wrong_do_not_keep_others_from_going_on(places):
    words, report, page = places
    ways = (faulty.fails, faulty.crashes, faulty.lacks, faulty.works)
    parts = [Part(faulty.hangs, 0.5), *(Part(way, 60) for way in ways)]
    assert main(["--rehearse", *words], parts) == 1
    found = json.loads(report.read_text())["parts"]
    assert {name: part["state"] for name, part in found.items()} == {
        "hangs": "failed",
        "fails": "failed",
        "crashes": "failed",
        "lacks": "skipped",
        "works": "rehearsed",
    }
    assert found["hangs"]["reason"].startswith("it was not done after 0 s")
    assert found["fails"]["reason"] == "ValueError: one | two three"
    assert found["crashes"]["reason"].startswith("its process ended with SIGABRT; it said last: ")
    assert found["lacks"]["reason"] == "nothing that does it is installed"
    text = page.read_text()
    assert text.startswith("# By hand\n")
    assert text.endswith("\nAlso by hand.\n")
    assert "old" not in text
    assert "failed: ValueError: one \\| two three" in text
    assert "skipped: nothing that does it is installed" in text
    assert "| inner, text | a |" in text


def test_what_was_not_asked_for_is_in_the_report_with_that_reason(places):
    words, report, page = places
    parts = [Part(faulty.works, 60), Part(faulty.fails, 60)]
    assert main(["--rehearse", "--only", "works", *words], parts) == 0
    found = json.loads(report.read_text())["parts"]
    assert found["fails"] == {"state": "skipped", "reason": "not asked for"}
    assert "\n### fails\n\nskipped: not asked for\n" in page.read_text()


def test_what_one_part_leaves_over_is_there_for_the_next_and_no_more():
    now = [0.0]
    budget = Budget(lambda: now[0])
    assert budget.limit(10) == 10
    now[0] = 4.0
    assert budget.limit(10) == 16
    now[0] = 20.0
    assert budget.limit(5) == 5


def test_a_part_for_which_no_time_is_left_is_skipped_with_that_reason(tmp_path):
    now = iter([0.0, *[3.9] * 9])
    budget = Budget(lambda: next(now))
    parts = [Part(faulty.works, 4)]
    ((part, found),) = checked(parts, tmp_path, rehearsal=True, budget=budget)
    assert part.name == "works"
    assert (found["state"], found["reason"]) == ("skipped", "the budget is gone: 0 s left of 4")


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_on_a_gpu_nothing_fails(places):
    words, *_ = places
    done = run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
