"""Clusters for tests."""

from __future__ import annotations

import pytest

from tests.kube.server import running


@pytest.fixture
def kube():
    """A cluster with Knative 1.22."""
    with running() as kube:
        yield kube
