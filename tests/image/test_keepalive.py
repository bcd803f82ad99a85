"""The image `keepalive`: it asks replicas, and has nothing else."""

from __future__ import annotations

import pytest

from tests.image.podman import HARDENED, SLOW

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
