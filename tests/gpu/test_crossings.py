"""What crosses the bus in a swap, to the byte, and which shapes do."""

from __future__ import annotations

import pytest

from tests.bench import crossings
from tests.gpu import standin

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed: make install")

ALIKE = {
    "detect": {"runs": 2, "up": 2 * 640 * 640 * 3 * 4, "down": 2 * 160 * 160 * 15 * 4},
    "identity": {"runs": 3, "up": 3 * 112 * 112 * 3 * 4, "down": 3 * 512 * 4},
}


def test_what_crosses_the_bus_in_a_swap():
    found = standin.run(
        crossings.counted, ["detect", "landmarks", "identity", "swap", "enhance"], []
    )
    assert found["swap"] == {
        "runs": 1,
        "up": 4 * (128 * 128 * 3 + 512) * 4,  # four small images that are one face
        "down": 4 * 128 * 128 * 3 * 4,
    }
    assert found["enhance"] == {"runs": 1, "up": 512 * 512 * 3 * 4, "down": 512 * 512 * 3 * 4}
    assert {role: found[role] for role in ALIKE} == ALIKE


def test_with_cutouts_the_picture_crosses_once_each_way_as_bytes():
    roles = ["detect", "landmarks", "identity", "swap", "enhance"]
    found = standin.run(crossings.counted, roles, ["swap", "enhance"])
    maps = 2 * 2 * 3 * 4
    assert found["swap"] == {
        "runs": 1,
        "up": 384 * 384 * 3 + 256 * 256 + maps + 512 * 4,
        "down": 384 * 384 * 3,
    }
    assert found["enhance"] == {
        "runs": 1,
        "up": 768 * 768 * 3 + 512 * 512 + maps,
        "down": 768 * 768 * 3,
    }
    assert {role: found[role] for role in ALIKE} == ALIKE


def test_cutouts_add_no_shapes():
    plain, cut = (crossings.shapes(list(crossings.SET), each) for each in ([], ["swap", "enhance"]))
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
