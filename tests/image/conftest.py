"""The images under test, each built once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from image import size
from tests.conftest import STRICT
from tests.image.podman import ROOT, Podman, Unprepared, prepared

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def podman(needs) -> Podman:
    """Podman, able to build; without it or the bases the test is skipped, or fails in CI."""
    needs("podman")
    scratch = ROOT / "build/podman"  # kept, so that later runs need not begin anew
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        return prepared(scratch)
    except Unprepared as error:
        reason = f"images cannot be built here: {error}"
    if STRICT:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cpu(podman) -> str:
    """The name of the image `cpu`."""
    return podman.build("cpu")


@pytest.fixture(scope="session")
def keepalive(podman) -> str:
    """The name of the image `keepalive`."""
    return podman.build("keepalive")


@pytest.fixture(scope="session")
def gpu(podman) -> str:
    """The name of the image `gpu`."""
    return podman.build("gpu")


@pytest.fixture
def weigh(podman, monkeypatch) -> Callable[..., int]:
    """Run `python -m image.size` on images under test."""
    for name, value in podman.environ.items():
        monkeypatch.setenv(name, value)
    base = next(each for each in podman.bases if each.startswith("RUNTIME="))[8:]

    def weigh(*targets: str) -> int:
        return size.main(["--name=localhost/ember-test", f"--base={base}", *targets])

    return weigh
