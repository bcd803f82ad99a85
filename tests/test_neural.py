"""The graphs that stand for published models are what they claim to be."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests import neural

if TYPE_CHECKING:
    from pathlib import Path


def _opened(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3  # the emap is used by no node, as in the real file
    return ort.InferenceSession(str(path), options)


def _run(session: ort.InferenceSession, items: int) -> list[np.ndarray]:
    return session.run(None, _feed(session, items))


def _feed(session: ort.InferenceSession, items: int) -> dict[str, np.ndarray]:
    rng, feed = np.random.default_rng(0), {}
    for each in session.get_inputs():
        sides = [64 if isinstance(side, str) else side for side in each.shape[1:]]
        feed[each.name] = rng.random((items, *sides)).astype(np.float32)
        if each.type == "tensor(double)":
            feed[each.name] = np.array([0.7])
    return feed


@pytest.mark.parametrize("family", neural.ROLES)
def test_every_graph_is_valid_and_gives_numbers_of_a_sensible_size(family, tmp_path):
    path = neural.make(tmp_path / "a.onnx", family)
    onnx.checker.check_model(str(path), full_check=True)
    for output in _run(_opened(path), 1):
        assert output.dtype == np.float32
        assert np.isfinite(output).all()
        assert output.std() > 0 or output.size == 1
        assert np.abs(output).max() < 200


@pytest.mark.parametrize("family", sorted({*neural.ROLES} - {"gpen_1024", "gpen_2048"}))
def test_a_dynamic_graph_gives_each_item_what_it_gives_it_alone(family, tmp_path):
    session = _opened(neural.make(tmp_path / "a.onnx", family, dynamic=True))
    feed = _feed(session, 2)
    both = session.run(None, feed)
    for n in range(2):
        own = {name: rows[n : n + 1] if rows.ndim > 1 else rows for name, rows in feed.items()}
        alone = session.run(None, own)
        for two, one in zip(both, alone, strict=True):
            np.testing.assert_allclose(two[n : n + 1], one, atol=1e-4)


def test_the_seed_decides_all_bytes(tmp_path):
    def digest(seed: int) -> str:
        path = neural.make(tmp_path / f"{seed}.onnx", "inswapper_128", seed=seed)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    assert digest(1) == digest(1) != digest(2)


def test_shuffling_moves_the_projection_and_changes_no_result(tmp_path):
    usual = neural.make(tmp_path / "a.onnx", "inswapper_128")
    shuffled = neural.make(tmp_path / "b.onnx", "inswapper_128", shuffled=True)
    assert list(onnx.load(usual).graph.initializer[-1].dims) == [512, 512]
    assert list(onnx.load(shuffled).graph.initializer[-1].dims) != [512, 512]
    np.testing.assert_array_equal(neural.emap(usual), neural.emap(shuffled))
    np.testing.assert_array_equal(_run(_opened(usual), 1)[0], _run(_opened(shuffled), 1)[0])


def test_a_half_graph_keeps_float32_outside_and_is_about_half_as_large(tmp_path):
    whole = neural.make(tmp_path / "a.onnx", "inswapper_128")
    half = neural.make(tmp_path / "b.onnx", "inswapper_128", half=True)
    assert half.stat().st_size < 0.55 * whole.stat().st_size
    one, other = (_run(_opened(path), 1)[0] for path in (whole, half))
    assert other.dtype == np.float32
    np.testing.assert_allclose(one, other, atol=0.02)


def test_another_identity_gives_another_face(tmp_path):
    session = _opened(neural.make(tmp_path / "a.onnx", "inswapper_128"))
    rng = np.random.default_rng(0)
    target = rng.random((1, 3, 128, 128), np.float32)
    faces = []
    for _ in range(2):
        source = rng.standard_normal((1, 512)).astype(np.float32)
        faces.append(session.run(None, {"target": target, "source": source / 22})[0])
    assert np.abs(faces[0] - faces[1]).mean() > 0.01
