"""schemathesis against the OpenAPI document: requests made from it, answers checked against it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver

from function.http.uris import Uris
from function.storage.storage import Storage
from tests.function.live import Live

CONFIG = Path(__file__).with_name("schemathesis.toml")


class NoNames(AbstractResolver):
    """Knows no host, so that URIs that were made up lead nowhere, and at once."""

    async def resolve(self, *_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    async def close(self):
        pass


@pytest.fixture
def nowhere():
    storage = Storage(resolver=NoNames(), timeout_s=1)
    with Live(fetch=Uris(storage, 1024**2, buckets=())) as server:
        yield server
        server.run(storage.close())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_schemathesis_finds_nothing(nowhere, tmp_path):
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "--config-file", CONFIG, "run", nowhere.url + "/openapi.json"]
    done = subprocess.run(
        [*command, "--max-examples", "100", "--seed", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout
    assert "19 selected" in done.stdout
