"""What each lane is promised, over HTTP: closed loops of clients, counted by what was done."""

from __future__ import annotations

import io
import threading
from collections import Counter
from dataclasses import replace
from http.client import HTTPConnection

import pytest
from PIL import Image

from function.request_context import SHARES, Lane
from function.service import service
from tests.function.live import FORM, HOPPER, Live, multipart

CROWDS = {
    "one of each beside many": (12, 1, 1),
    "more than places": (12, 6, 6),
    "no interactive ones": (0, 12, 1),
}
SLACK = 2
"""How many may be in work of a lane when it is counted."""


def small(photo):
    """The photo at a size that is quickly done."""
    out = io.BytesIO()
    Image.open(io.BytesIO(photo)).resize((160, 160)).save(out, "JPEG")
    return out.getvalue()


class Crowd:
    """Clients that each send their next request when they have the answer to the last.

    Args:
        server: whom they ask.
        path, body: what they send.
    """

    def __init__(self, server, path, body):
        self.server, self.path, self.body = server, path, body
        self.done: list[Lane] = []
        self._lock, self._enough = threading.Lock(), threading.Event()

    def served(self, clients, total):
        """Of so many answers, how many each lane has had."""
        threads = [
            threading.Thread(target=self._send, args=(lane, total))
            for lane, count in clients.items()
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert self.done[total:] or len(self.done) == total
        return Counter(self.done[:total])

    def _send(self, lane, total):
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=300)
        headers = FORM | {"Ember-Lane": lane}
        while not self._enough.is_set():
            connection.request("POST", self.path, self.body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            with self._lock:
                self.done.append(lane)
                if len(self.done) >= total:
                    self._enough.set()
        connection.close()


@pytest.fixture(scope="module", params=["alone", "batches"])
def server(request):
    """A server whose models take one item at a time, and one that makes batches."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "batches":
            engines = service.Engines
            patch.setattr(
                service,
                "Engines",
                lambda models, *rest: engines(
                    [replace(model, buckets=(1, 2, 4)) for model in models], *rest
                ),
            )
        with Live(request_timeout_s=300.0) as server:
            yield server


@pytest.mark.parametrize("crowd", CROWDS.values(), ids=CROWDS)
def test_every_lane_has_its_share_of_what_is_done(server, crowd):
    clients = dict(zip(Lane, crowd, strict=True))
    total, body = 100, multipart(("image", small(HOPPER)))
    served = Crowd(server, "/v1/faces", body).served(clients, total)
    for lane, share in SHARES.items():
        assert served[lane] >= total * share / 100 - SLACK, served
    if clients[Lane.INTERACTIVE]:
        assert served[Lane.INTERACTIVE] >= total * 0.75 - 2 * SLACK, served


def test_every_lane_has_its_share_of_whole_swaps(server):
    clients = dict(zip(Lane, (12, 2, 1), strict=True))
    photo = small(HOPPER)
    body = multipart(("source", photo), ("target", photo))
    served = Crowd(server, "/v1/swap", body).served(clients, 60)
    assert served[Lane.BULK] >= 60 * 0.05 - 1, served
    assert served[Lane.STANDARD] >= 60 * 0.2 - SLACK, served
