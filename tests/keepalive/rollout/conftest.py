"""A Service to roll out in, and a way to its cluster."""

from __future__ import annotations

import pytest

from keepalive.cluster.client import Cluster
from tests.keepalive.rollout.rolling import SERVICES
from tests.kube.service import service


@pytest.fixture
def ember(kube, server):
    """A Service with one revision, whose addresses all lead to a real server."""
    kube.knative.address = server.url
    kube.create(SERVICES, "ember", service(image="ember:1", min_scale=1, max_scale=8))
    return kube


@pytest.fixture
def connect(ember, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(ember.config(tmp_path)))
    with Cluster.connect() as cluster:
        yield cluster
