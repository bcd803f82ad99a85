"""Plans come to the container that has the GPU: an init container has none, and no NVML."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.function.service import main_container
from tests.gpu import standin

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed: make install")


@pytest.fixture
def environ(tmp_path):
    made = {"EMBER_STORE": str(tmp_path / "store"), "EMBER_PLANS": str(tmp_path / "shared")}
    return made | main_container.SETTINGS


@pytest.fixture
def published(environ, tmp_path):
    """How many plans of a GPU are in the shared place."""
    return standin.run(main_container.publish, str(tmp_path / "builder"), **environ)


def init_container(environ):
    """What `ember prefetch` writes where there is no GPU."""
    words = [sys.executable, "-m", "function", "prefetch"]
    known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(words, env=known | environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_without_a_gpu_the_models_are_brought_and_the_plans_left(environ, published):
    said = init_container(environ)
    assert "files are here and proven" in said
    assert "warning" not in said.lower()
    assert standin.run(main_container.here, **environ) == []


def test_the_main_container_has_them_before_it_opens_a_model(environ, published):
    init_container(environ)
    found = standin.run(main_container.when_the_first_model_is_opened, **environ)
    assert len(found) == published > 0


def test_those_of_another_gpu_stay_where_they_are(environ, published):
    other = environ | {"STANDIN_MIG": "1"}
    init_container(environ)
    assert standin.run(main_container.when_the_first_model_is_opened, **other) == []
    assert standin.run(main_container.here, **environ) == []
