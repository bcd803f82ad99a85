"""Images keep to their budgets, and `make image-size` says so."""

from __future__ import annotations

import re

import pytest

from image import size
from tests.image.podman import SLOW

pytestmark = SLOW


@pytest.fixture
def weigh(podman, monkeypatch):
    """Run `python -m image.size` on images under test."""
    for name, value in podman.environ.items():
        monkeypatch.setenv(name, value)
    base = next(each for each in podman.bases if each.startswith("RUNTIME="))[8:]

    def weigh(*targets):
        return size.main(["--name=localhost/ember-test", f"--base={base}", *targets])

    return weigh


def test_images_keep_to_their_budgets(weigh, cpu, keepalive, capsys):
    assert weigh("cpu", "keepalive") == 0
    told = capsys.readouterr().out
    assert "| OpenCV |" in told
    totals = [float(mb) for mb in re.findall(r"\*\*all layers\*\* \| [\d.]+ \| ([\d.]+)", told)]
    parts = [
        float(mb) for mb in re.findall(r"^\| [\w ,:]+ \| [\d.]+ \| ([\d.]+)", told, re.MULTILINE)
    ]
    assert sum(parts) == pytest.approx(sum(totals), rel=0.05)


def test_an_image_over_its_budget_fails(weigh, keepalive, monkeypatch, capsys):
    monkeypatch.setitem(size.BUDGETS_MB, "keepalive", 1)
    assert weigh("keepalive") == 1
    assert re.search(r"keepalive is \d+\.\d MB over its budget", capsys.readouterr().err)
