"""The image `keepalive`: it asks replicas, and has nothing else."""

from __future__ import annotations

import pytest

from tests.image.podman import HARDENED, SLOW
from tests.keepalive.prescaler.rounds import SCHEDULE
from tests.kube.server import running
from tests.kube.service import service

pytestmark = SLOW

LOCKED_UP = ("run", "--rm", "--network=host", "--user=12345", *HARDENED)


def test_it_finds_a_replica_ready(podman, keepalive, server):
    done = podman(*LOCKED_UP, keepalive, "ping", server.url)
    assert ": ready (" in done.stdout


def test_it_fails_when_there_is_none(podman, keepalive, free_port):
    done = podman(*LOCKED_UP, keepalive, "ping", f"http://127.0.0.1:{free_port}", fine=False)
    assert done.returncode == 69
    assert "Connection refused" in done.stderr


@pytest.mark.parametrize("module", ["numpy", "cv2", "onnxruntime", "PIL", "function", "warmup"])
def test_nothing_heavy_is_in_it(podman, keepalive, module):
    words = ("--entrypoint=/usr/bin/python3.11", keepalive, "-c", f"import {module}")
    done = podman(*LOCKED_UP, *words, fine=False)
    assert f"No module named '{module}'" in done.stderr


def test_it_raises_a_floor(podman, keepalive, tmp_path):
    """All that the pre-scaler imports is there, time zones too."""
    text = SCHEDULE.replace("0 8 * * mon-fri", "0 0 * * *").replace("hours = 10", "hours = 24")
    (tmp_path / "schedule.toml").write_text(text.replace('"UTC"', '"Europe/Berlin"'))
    with running() as kube:
        kube.create("services.serving.knative.dev", "ember", service(min_scale=1))
        kube.config(tmp_path)
        tmp_path.chmod(0o755)
        mount = (
            f"--volume={tmp_path}:/etc/ember:ro",
            "--env=KUBECONFIG=/etc/ember/admin.kubeconfig",
        )
        words = ("prescale", "--schedule=/etc/ember/schedule.toml")
        done = podman(*LOCKED_UP, *mount, keepalive, *words)
    assert "ember-00001: the floor changes from 1 to 4" in done.stdout
