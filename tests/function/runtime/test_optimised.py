"""Optimised graphs: the same results from a kept one, and never anything from a damaged one."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from function.process.wiring.service import embedded
from function.runtime.backends import optimised
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.optimised import Optimised
from warmup.models import manifest

MODEL = next(m for m in manifest.read(embedded()) if m.role == "identity")
BATCH = np.random.default_rng(3).random((1, 150, 150, 3), np.float32)
FILES = ("graph.onnx", "weights.bin")


@pytest.fixture
def kept(tmp_path):
    """An entry that was made."""
    entry = Optimised.of(tmp_path, MODEL.file.sha256)
    make(entry)
    return entry


def make(entry):
    """Make an entry and wait for the disk."""
    engine = entry.make(MODEL.path, 1)
    for thread in threading.enumerate():
        if thread.name == "keep":
            thread.join()
    return engine


def entries(entry):
    return sorted(each.name for each in entry.folder.parent.iterdir())


def test_there_is_nothing_to_load_at_first(tmp_path):
    assert Optimised.of(tmp_path, MODEL.file.sha256).load(1) is None


def test_a_kept_graph_gives_what_the_model_gives(kept):
    expected = OnnxEngine(MODEL.path).run(BATCH)
    for engine in (kept.load(1), make(kept)):
        for one, other in zip(engine.run(BATCH), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_kept_graph_is_mapped_and_not_read(kept):
    engine = kept.load(1)
    assert str(kept.folder / "weights.bin") in Path("/proc/self/maps").read_text()
    engine.run(BATCH)


def test_an_entry_has_nothing_else_beside_it(kept):
    assert entries(kept) == [kept.folder.name]
    assert sorted(each.name for each in kept.folder.iterdir()) == sorted((*FILES, "proof.json"))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_entry_is_dropped_and_can_be_made_again(kept, name, damage):
    path = kept.folder / name
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "changed":
        path.write_bytes(data[:100] + bytes([data[100] ^ 255]) + data[101:])
    else:
        path.unlink()
    assert kept.load(1) is None
    assert entries(kept) == []
    make(kept)
    assert kept.load(1)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"graph.onnx": 1}'])
def test_an_entry_with_a_proof_that_proves_nothing_is_dropped(kept, text):
    (kept.folder / "proof.json").write_text(text)
    assert kept.load(1) is None
    assert not kept.folder.exists()


def test_a_graph_that_the_runtime_refuses_is_dropped(kept, caplog):
    """Also where the proof holds, e.g. because it was written by something that went wrong."""
    path = kept.folder / "graph.onnx"
    path.write_bytes(b"\0" * path.stat().st_size)
    proof = json.loads((kept.folder / "proof.json").read_text())
    proof["graph.onnx"]["stamp"] = optimised._stamp(path.stat())
    (kept.folder / "proof.json").write_text(json.dumps(proof))
    assert kept.load(1) is None
    assert not kept.folder.exists()
    assert "no use" in caplog.text


def test_an_entry_that_was_copied_is_hashed_once(kept, tmp_path, monkeypatch):
    copied = Optimised(tmp_path / "elsewhere" / kept.folder.name)
    shutil.copytree(kept.folder, copied.folder)
    hashed = []
    digest = optimised._digest
    monkeypatch.setattr(optimised, "_digest", lambda path: hashed.append(path.name) or digest(path))
    assert copied.load(1)
    assert sorted(hashed) == sorted(FILES)
    assert copied.load(1)
    assert len(hashed) == 2


def test_another_runtime_or_cpu_has_an_entry_of_its_own(tmp_path, monkeypatch):
    names = {Optimised.of(tmp_path, MODEL.file.sha256).folder.name}
    with monkeypatch.context() as patch:
        patch.setattr(optimised, "VERSION", "0.0")
        names.add(Optimised.of(tmp_path, MODEL.file.sha256).folder.name)
    with monkeypatch.context() as patch:
        patch.setattr(optimised, "cpu_features", lambda: "abacus")
        names.add(Optimised.of(tmp_path, MODEL.file.sha256).folder.name)
    names.add(Optimised.of(tmp_path, "0" * 64).folder.name)
    assert len(names) == 4


def test_without_a_store_that_can_be_written_the_model_is_just_loaded(tmp_path):
    (tmp_path / "file").write_text("")
    entry = Optimised.of(tmp_path / "file", MODEL.file.sha256)
    assert entry.load(1) is None
    assert make(entry).run(BATCH)


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    entry = Optimised.of(tmp_path, MODEL.file.sha256)

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert make(entry).run(BATCH)
    assert entries(entry) == []


def test_two_that_make_the_same_entry_leave_one(tmp_path):
    entry = Optimised.of(tmp_path, MODEL.file.sha256)
    engines = [entry.make(MODEL.path, 1) for _ in range(2)]
    make(entry)
    assert all(engine.run(BATCH) for engine in engines)
    assert entries(entry) == [entry.folder.name]
    assert entry.load(1)


def test_what_was_abandoned_or_not_used_for_a_month_goes(kept):
    folder = kept.folder.parent
    for name, age in ((".draft-old", 7200), (".draft-new", 60), ("unused", 40 * 86400)):
        (folder / name).mkdir()
        then = kept.folder.stat().st_mtime - age
        os.utime(folder / name, (then, then))
    make(kept)
    assert entries(kept) == sorted([".draft-new", kept.folder.name])
