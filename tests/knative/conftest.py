"""The images are those that tests/image builds."""

from __future__ import annotations

from tests.image.conftest import cpu, keepalive, podman

__all__ = ["cpu", "keepalive", "podman"]
