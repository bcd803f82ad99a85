"""The models as an image of their own, mounted into replicas as kubelets mount image volumes."""

from __future__ import annotations

import pytest

from function.process.wiring.service import embedded
from function.weights import ociimage
from tests.function.live import SOURCE, TARGET
from tests.image.podman import SLOW
from warmup.models import manifest

pytestmark = SLOW


@pytest.fixture
def models(podman, tmp_path):
    """The image of the embedded models, as a node has it."""
    path = embedded()
    ociimage.write(path, manifest.read(path), tmp_path / "models")
    return podman("pull", "--quiet", f"oci:{tmp_path / 'models'}").stdout.strip()


def test_two_pods_of_a_node_serve_from_one_image_without_an_init_container(podman, cpu, models):
    mounted = f"--mount=type=image,source={models},destination=/etc/ember/models"
    settings = {"EMBER_MANIFEST": "/etc/ember/models/models.toml", "EMBER_OFFLINE": "true"}
    for _ in range(2):
        with podman.serving(cpu, mounted, **settings) as replica:
            answer = replica.form("/v1/swap", SOURCE, TARGET)
            assert answer.status == 200
            messages = [event["message"] for event in replica.events()]
            assert not any("fetch" in message for message in messages)
