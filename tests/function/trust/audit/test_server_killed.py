"""Servers that are killed while they answer swaps: each answer has its line, and all is whole."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import pytest

from function.trust.audit import keyring
from tests.function.live import FORM, SOURCE, TARGET, multipart
from tests.running import running
from tests.soak import tried

from .chains import files
from .test_killed import REPLICAS, check

BODY = multipart(SOURCE, TARGET)
CLIENTS = 4


class Load:
    """Clients that send swaps to a server, one after the other, until it is killed.

    Args:
        server: the server.
        name: what ids of requests begin with.
        until: after so many answers it is killed.
    """

    def __init__(self, server, name, until):
        self._server, self._name, self._left = server, name, until
        self._lock = threading.Lock()
        self.answered = set()

    def run(self):
        """Send until it is killed, from several threads."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            for client in range(CLIENTS):
                pool.submit(self._client, client)

    def _client(self, client):
        number = 0
        while True:
            number += 1
            name = f"{self._name}-{client}-{number}"
            try:
                headers = FORM | {"Ember-Request-Id": name}
                status, _, _ = self._server.send("POST", "/v1/swap", BODY, headers)
            except (OSError, HTTPException):
                return
            if status == 200:
                with self._lock:
                    self.answered.add(name)
                    self._left -= 1
                    if self._left == 0:
                        self._server.process.kill()


@pytest.mark.timeout(1800)
def test_every_answered_swap_has_its_line_however_often_servers_are_killed(tmp_path):
    keys, folder = tmp_path / "keys", tmp_path / "audit"
    keys.write_text(keyring.new())
    settings = {"EMBER_AUDIT": folder.as_uri(), "EMBER_AUDIT_KEY": str(keys)}
    rng, kills, requests = random.Random(4), tried(2, 100), set()
    for turn in range(kills // REPLICAS):
        with running(**settings) as one, running(**settings) as two:
            loads = [
                Load(each, f"{turn}-{place}", rng.randrange(2, 25))
                for place, each in enumerate((one, two))
            ]
            with ThreadPoolExecutor(REPLICAS) as pool:
                for load in loads:
                    pool.submit(load.run)
            for load in loads:
                requests |= load.answered
    assert len(requests) >= 2 * kills
    check(files(folder), keys, requests, kills)
    print(f"{kills} kills, {len(requests)} answers")
