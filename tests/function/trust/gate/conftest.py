"""Faces, embeddings and models of a gate that say openly what they were told to say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from function.faces.face import Box, Detection, Face, Pose
from function.trust.gate.identity_list import IdentityModel

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = IdentityModel("face_identity_128", "71f2" * 16)


class Told:
    """Stands for a model of contents or ages: gives the numbers that it was told, one a call."""

    def __init__(self, *numbers: float):
        self._numbers, self.asked = list(numbers), 0

    def look(self, pixels: np.ndarray) -> float:
        self.asked += 1
        return self._numbers.pop(0)

    def years(self, pixels: np.ndarray, faces: list[Face]) -> list[float]:
        self.asked += 1
        return [self._numbers.pop(0) for _ in faces]


def models(
    gate: Told | None = None, age: Told | None = None, swap: object = None
) -> SimpleNamespace:
    return SimpleNamespace(gate=gate, age=age, swap=swap)


def face(side: float) -> Face:
    """A face in the upper left corner."""
    box, five = Box(0, 0, side, side), np.zeros((5, 2), np.float32)
    return Face(0, box, Detection(box, five, 1.0), five, 1.0, Pose(0, 0, 0))


def somebody(seed: int) -> np.ndarray:
    """An embedding of a stranger to all others, as long as those of the embedded model."""
    found = np.random.default_rng(seed).normal(size=128)
    return np.asarray(found / np.linalg.norm(found), np.float32)


def alike(embedding: np.ndarray, distance: float) -> np.ndarray:
    """Another embedding, so far away."""
    step = somebody(999)
    return np.asarray(embedding + step * distance / np.linalg.norm(step), np.float32)


@pytest.fixture
def pixels() -> np.ndarray:
    return np.zeros((100, 100, 3), np.uint8)


@pytest.fixture
def ticking() -> Callable[[], float]:
    """A clock that a test sets."""
    clock = SimpleNamespace(now=0.0)
    clock.__class__ = type("Clock", (SimpleNamespace,), {"__call__": lambda self: self.now})
    return clock
