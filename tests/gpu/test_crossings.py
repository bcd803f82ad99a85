"""What crosses the bus in a swap, to the byte, and which shapes do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bench import crossings
from tests.gpu import standin

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed: make install")

WAYS = ("up", "down")
DOCS = Path(__file__).parents[2] / "docs/benchmarks.md"
CUT = list(crossings.CUT)
ALIKE = {
    "detect": {"runs": 2, "up": 2 * 640 * 640 * 3 * 4, "down": 2 * 160 * 160 * 15 * 4},
    "landmarks": {"runs": 4, "up": 4 * 192 * 192 * 3 * 4, "down": 4 * (468 * 3 + 1) * 4},
    "identity": {"runs": 3, "up": 3 * 112 * 112 * 3 * 4, "down": 3 * 512 * 4},
    "occlusion": {"runs": 2, "up": 2 * 256 * 256 * 3 * 4, "down": 2 * 256 * 256 * 4},
}


@pytest.fixture(scope="module")
def crops():
    """What crosses in a swap by crops, by role."""
    return standin.run(crossings.counted, list(crossings.SET), [])


@pytest.fixture(scope="module")
def cutouts():
    """The same with cutouts."""
    return standin.run(crossings.counted, list(crossings.SET), CUT)


def test_what_crosses_the_bus_in_a_swap(crops):
    assert crops == ALIKE | {
        "swap": {
            "runs": 1,
            "up": 4 * (128 * 128 * 3 + 512) * 4,  # four small images that are one face
            "down": 4 * 128 * 128 * 3 * 4,
        },
        "enhance": {"runs": 1, "up": 512 * 512 * 3 * 4, "down": 512 * 512 * 3 * 4},
    }


def test_with_cutouts_the_picture_crosses_once_each_way_as_bytes(cutouts):
    maps = 2 * 2 * 3 * 4
    assert cutouts == ALIKE | {
        "swap": {
            "runs": 1,
            "up": 384 * 384 * 3 + 256 * 256 + maps + 512 * 4,
            "down": 384 * 384 * 3,
        },
        "enhance": {
            "runs": 1,
            "up": 768 * 768 * 3 + 512 * 512 + maps,
            "down": 768 * 768 * 3,
        },
    }


def test_the_documentation_has_these_figures_and_their_sums(crops, cutouts):
    section = DOCS.read_text().partition("## What crosses the bus")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| ((?:[\d,]+ \| ){4}[\d,]+) \|$", section, re.MULTILINE)
    told = {name: [int(n.replace(",", "")) for n in text.split(" | ")] for name, text in rows}
    found = {
        role: [crops[role]["runs"], *(each[role][way] for each in (crops, cutouts) for way in WAYS)]
        for role in crossings.SET
    }
    few = [figures for role, figures in found.items() if role not in crossings.LEFT_OUT]
    found["all but the last two"] = list(map(sum, zip(*few, strict=True)))
    found["all"] = list(map(sum, zip(*(found[role] for role in crossings.SET), strict=True)))
    assert told == found


def test_cutouts_add_no_shapes():
    plain, cut = (crossings.shapes(list(crossings.SET), each) for each in ([], CUT))
    sizes = {role: [shape[0][0] for shape in each] for role, each in plain.items()}
    assert sizes == {
        "detect": [1],
        "landmarks": [1],
        "identity": [1, 2, 4],
        "swap": [1, 4],
        "occlusion": [1],
        "enhance": [1],
    }
    assert sizes == {role: [shape[0][0] for shape in each] for role, each in cut.items()}
