"""What is said where ONNX Runtime is not there, or twice."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import invalidate_caches
from threading import Barrier, BrokenBarrierError

import pytest

from function.runtime import installed
from warmup.failures import UnavailableError
from warmup.plans import tensorrt
from warmup.settings.variables import SettingsError


@pytest.fixture
def site(tmp_path):
    """Makes a folder of packages in which distributions have put ONNX Runtime."""

    def make(*names):
        (tmp_path / "onnxruntime").mkdir()
        (tmp_path / "onnxruntime/__init__.py").touch()
        for name in names:
            (tmp_path / f"{name}-1.30.0.dist-info").mkdir()
            record = tmp_path / f"{name}-1.30.0.dist-info/RECORD"
            record.write_text("onnxruntime/LICENSE,,\nonnxruntime/__init__.py,,\n")
        return tmp_path

    return make


def serve(site):
    """Start the server with what is in a folder, and wait for its end."""
    return subprocess.run(
        [sys.executable, "-m", "function"],
        env={**os.environ, "PYTHONPATH": str(site), "EMBER_PORT": "0"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_server_with_two_of_them_ends_at_once_and_says_how_to_mend_it(site):
    folder = site("onnxruntime", "onnxruntime_gpu")
    done = serve(folder)
    assert done.returncode == 69
    assert f"2 times in {folder}, one over the other: onnxruntime, onnxruntime-gpu." in done.stderr
    assert "pip uninstall --yes onnxruntime onnxruntime-gpu" in done.stderr
    assert "make install EXTRAS=gpu " in done.stderr
    assert "listening" not in done.stderr


def test_a_command_that_runs_models_says_it_as_well(site):
    folder = site("onnxruntime", "onnxruntime_gpu", "onnxruntime_openvino")
    done = subprocess.run(
        [sys.executable, "-m", "function", "faces", "function/samples/hopper.jpg"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 69
    assert "installed 3 times" in done.stderr
    assert "onnxruntime onnxruntime-gpu onnxruntime-openvino" in done.stderr


@pytest.mark.parametrize("names", [[], ["onnxruntime"], ["onnxruntime_gpu"]])
def test_one_of_them_is_right_whether_or_not_its_files_are_listed(names, site, monkeypatch):
    monkeypatch.syspath_prepend(site(*names))
    installed.check()


def test_what_only_begins_with_its_name_is_something_else(site, monkeypatch):
    folder = site("onnxruntime_gpu")
    (folder / "onnxruntime_extensions-0.14.dist-info").mkdir()
    (folder / "onnxruntime_extensions-0.14.dist-info/RECORD").write_text(
        "onnxruntime_extensions/__init__.py,,\n"
    )
    monkeypatch.syspath_prepend(folder)
    installed.check()


def test_without_any_both_extras_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UnavailableError) as caught:
        installed.check()
    assert "make install EXTRAS=cpu " in str(caught.value)
    assert "the same with gpu" in str(caught.value)


def test_libraries_that_are_not_found_are_not_printed(monkeypatch, capsys):
    import onnxruntime

    asked, both = [], Barrier(2)

    def preload_dlls():
        asked.append(print("Failed to load"))
        with suppress(BrokenBarrierError):
            both.wait(0.2)  # another thread would come in between

    monkeypatch.setattr(onnxruntime, "preload_dlls", preload_dlls)
    installed._preload.cache_clear()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: installed.preload(), range(2)))
    print("heard")
    assert len(asked) == 1
    assert capsys.readouterr().out == "heard\n"
    installed._preload.cache_clear()


class TestBackends:
    def test_a_server_with_a_backend_that_is_not_there_ends_at_once_and_says_what_has_it(self):
        done = subprocess.run(
            [sys.executable, "-m", "function"],
            env={**os.environ, "EMBER_BACKENDS": "cuda,cpu", "EMBER_PORT": "0"},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 78
        assert "EMBER_BACKENDS names cuda, and the ONNX Runtime that is here" in done.stderr
        assert "an image with it, gpu-ort or gpu-both, or make install EXTRAS=gpu" in done.stderr
        assert "listening" not in done.stderr

    def test_the_runtime_for_gpus_is_known_by_what_only_it_has(self, site, monkeypatch):
        folder = site("onnxruntime_gpu")
        (folder / "onnxruntime/capi").mkdir()
        monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
        monkeypatch.syspath_prepend(folder)
        with pytest.raises(SettingsError, match="cuda"):
            installed.check_backends(["cuda", "cpu"])
        (folder / "onnxruntime/capi/libonnxruntime_providers_cuda.so").touch()
        installed.check_backends(["cuda", "cpu"])

    def test_any_library_that_runs_plans_will_do(self, monkeypatch, tmp_path):
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        for name in tensorrt.modules():  # another test may have imported one
            monkeypatch.delitem(sys.modules, name, raising=False)
        with pytest.raises(SettingsError, match="an image with it, gpu or gpu-both"):
            installed.check_backends(["tensorrt"])
        (tmp_path / "tensorrt_lean_bindings").mkdir()
        (tmp_path / "tensorrt_lean_bindings/__init__.py").touch()
        invalidate_caches()
        installed.check_backends(["tensorrt", "cpu"])
