"""Two builds of one commit give the same layers."""

from __future__ import annotations

import pytest

from tests.image.podman import SLOW
from tests.soak import tried

pytestmark = SLOW


@pytest.fixture
def anew(podman):
    """Build without what earlier builds have left, and leave nothing."""

    def images():
        return set(podman("images", "--all", "--quiet", "--no-trunc").stdout.split())

    before = images()
    yield lambda target: podman.build(target, "--no-cache", name="ember-test-again")
    if made := images() - before:
        podman("rmi", "--force", *made)


@pytest.mark.parametrize("target", tried(["keepalive"], soak=["keepalive", "cpu"]))
def test_a_build_from_nothing_gives_the_same_layers(podman, request, anew, target):
    first = podman.inspect(request.getfixturevalue(target))
    again = podman.inspect(anew(target))
    assert again["RootFS"]["Layers"] == first["RootFS"]["Layers"]
    assert again["Created"] == first["Created"]
