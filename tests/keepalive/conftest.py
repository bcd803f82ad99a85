"""Clusters for tests of what changes floors."""

from __future__ import annotations

import pytest

from keepalive.cluster.client import Cluster
from tests.kube.conftest import kube

__all__ = ["kube"]


@pytest.fixture
def connect(kube, tmp_path, monkeypatch):
    """Connects with a token, as from a shell with that configuration."""
    opened = []

    def connected(token="admin"):
        monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path, token)))
        opened.append(Cluster.connect())
        return opened[-1]

    yield connected
    for each in opened:
        each.client.close()
