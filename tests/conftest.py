"""What tests of every package share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

import warmup.plans.nvml
from tests.running import Server, running, unused_port
from tests.warmup.plans.nvml import Card, Nvml
from warmup.failures import UnavailableError
from warmup.plans.nvml import Gpu, first
from warmup.plans.tensorrt import RTX, Library, library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest_plugins = ["tests.durations"]

IMAGES = "tests/image/"
STRICT = os.environ.get("EMBER_TEST_STRICT") == "1"

# The tests' own settings must not depend on those of the shell that runs them.
for _name in [name for name in os.environ if name.startswith("EMBER_") or name == "PORT"]:
    if not _name.startswith("EMBER_TEST_"):
        del os.environ[_name]

# What is started in the background, or by nohup, ignores these, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

# How long an example takes says nothing on a machine that others use as well.
settings.register_profile(
    "ember", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ember")

# Nor may they leave anything in the home of whoever runs them.
_STORE = TemporaryDirectory(prefix="ember-store-")
os.environ["EMBER_STORE"] = _STORE.name


class ByFile(LoadScopeScheduling):
    """Where several processes share the tests, those of a file stay together, and all of images."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return IMAGES if _makes_images(file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Making images takes longest, so it comes first."""
    items.sort(key=lambda item: not _makes_images(item.nodeid.partition("::")[0]))


def _makes_images(file: str) -> bool:
    return file.startswith(IMAGES) or file.endswith("/test_pod.py")


@pytest.fixture(scope="session")
def needs() -> Callable[[str], str]:
    """The path of a program that a test drives; without it the test is skipped, or fails in CI."""

    def find(program: str) -> str:
        if path := shutil.which(program):
            return path
        reason = f"{program} is not installed: `make services` says how to get it"
        if STRICT:
            pytest.fail(reason)
        pytest.skip(reason)

    return find


@pytest.fixture
def cards(monkeypatch) -> Iterator[Callable[..., Nvml]]:
    """Puts GPUs into this machine, as far as NVML tells of them; see `tests.warmup.plans.nvml`."""

    def cards(*found: Card, visible: str | None = None, **more: Any) -> Nvml:
        nvml = Nvml(*found, **more)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        _forget_gpus()
        return nvml

    yield cards
    _forget_gpus()


def _forget_gpus() -> None:
    warmup.plans.nvml._nvml.cache_clear()
    warmup.plans.nvml._handle.cache_clear()


@pytest.fixture
def gpu() -> Gpu:
    """The GPU of this machine; without one the test is skipped by name, in CI as well."""
    try:
        return first()
    except UnavailableError as error:
        pytest.skip(f"needs an NVIDIA GPU: {error}")


@pytest.fixture(scope="session")
def rtx() -> Library:
    """TensorRT-RTX, which builds plans without a GPU."""
    try:
        return library(RTX)
    except UnavailableError as error:
        if STRICT:
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture
def free_port() -> int:
    """A port that nothing listens on."""
    return unused_port()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that is ready, shared by all tests: leave it as it is."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def photos() -> Path:
    """The folder of sample photos: `astronaut.png` and `grace_hopper.jpg`."""
    return Path(__file__).parent / "photos"
