"""The images under test, each built once."""

from __future__ import annotations

import pytest

from tests.conftest import STRICT
from tests.image.podman import ROOT, Podman, Unprepared, prepared


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
