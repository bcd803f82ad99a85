"""The structure of the face mesh."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from function.faces.topology import Topology


@pytest.fixture(scope="module")
def topology():
    return Topology.load()


def test_the_mesh_is_one_sheet_whose_border_is_the_oval(topology):
    edges = Counter(
        frozenset((int(corners[k]), int(corners[k - 1])))
        for corners in topology.triangles
        for k in range(3)
    )
    border = {point for edge, count in edges.items() if count == 1 for point in edge}
    assert set(edges.values()) == {1, 2}
    assert border == set(topology.oval.tolist())


def test_all_triangles_are_wound_alike(topology):
    """Two neighbours run along their common edge in opposite ways, so no directed edge repeats."""
    directed = Counter(
        (int(corners[k - 1]), int(corners[k])) for corners in topology.triangles for k in range(3)
    )
    assert set(directed.values()) == {1}


def test_steps_start_at_the_outline_and_grow_by_one(topology):
    for steps, start in (
        (topology.from_oval, topology.oval),
        (topology.from_lips, topology.lips),
    ):
        assert set(np.flatnonzero(steps == 0)) == set(start.tolist())
        spans = np.ptp(steps[topology.triangles], axis=1)
        assert spans.max() == 1


def test_only_triangles_at_the_eyes_and_the_mouth_are_soft(topology):
    nose, chin, forehead = 4, 152, 10
    touching = topology.triangles[topology.soft]
    assert not np.isin(touching, (nose, chin, forehead)).any()
    assert np.isin(topology.lips, touching).all()
