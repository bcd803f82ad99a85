"""Two builds of one commit give the same layers."""

from __future__ import annotations

import pytest

from tests.image.podman import SLOW

pytestmark = SLOW


@pytest.mark.parametrize("target", ["keepalive", "cpu"])
def test_a_build_from_nothing_gives_the_same_layers(podman, request, target):
    first = podman.inspect(request.getfixturevalue(target))
    again = podman.inspect(podman.build(target, "--no-cache", name="ember-test-again"))
    assert again["RootFS"]["Layers"] == first["RootFS"]["Layers"]
    assert again["Created"] == first["Created"]
