"""A long queue, over real HTTP: what is degraded says so, and ends when the queue does."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from function.admission.degradation import STEP_S
from function.process.wiring.service import embedded
from function.service import work
from tests import neural as graphs
from tests.function.live import HOPPER, Live
from tests.function.raw import eventually
from tests.function.service.test_neural import entry
from tests.graphs import swapping


@pytest.fixture
def held(monkeypatch):
    """Makes a server of one thread that does not decode before it is let go."""
    go, decode, servers = threading.Event(), work.decode, []

    def make(*degrade, **settings):
        server = Live(threads=1, degrade=degrade, degrade_wait_s=0.5, **settings).__enter__()
        servers.append(server)
        monkeypatch.setattr(work, "decode", lambda *a, **k: go.wait(60) and decode(*a, **k))
        return server, go

    yield make
    go.set()
    for server in servers:
        server.__exit__()


def faces(server, lane="standard"):
    return server.form("/v1/faces", ("image", HOPPER), Ember_Lane=lane)


def test_a_quick_search_is_named_in_the_answer_and_ends_with_the_queue(held, monkeypatch):
    server, go = held("quick-search")
    searched = []
    find = type(server.service._work._pipeline).find
    monkeypatch.setattr(
        "function.faces.pipeline.Pipeline.find",
        lambda *a, quick=False, **k: searched.append(quick) or find(*a, quick=quick, **k),
    )
    with ThreadPoolExecutor(8) as clients:
        first = [clients.submit(faces, server) for _ in range(3)]
        eventually(lambda: server.service.waiting == 1)
        second = [clients.submit(faces, server) for _ in range(2)]
        eventually(lambda: server.service.waiting == 3)
        scrape = server.get("/metrics").body.decode()
        assert 'ember_rung{rung="quick-search"} 1.0' in scrape
        go.set()
        answers = [each.result() for each in (*first, *second)]
    assert [answer.status for answer in answers] == [200] * 5
    said = [answer.headers["Ember-Degraded"] for answer in answers]
    assert said.count("quick-search") == searched.count(True) >= 2
    assert said.count(None) == searched.count(False) >= 2
    served = f'ember_rung_requests_total{{rung="quick-search"}} {searched.count(True)}.0'
    assert served in server.get("/metrics").body.decode()


@pytest.fixture
def neural_manifest(tmp_path):
    """A manifest with a swapper that inverts faces, and an enhancer."""
    files = {
        ("detect", "centerface"): embedded().parent / "centerface.onnx",
        ("identity", "arcface"): graphs.make(tmp_path / "identity.onnx", "arcface"),
        ("swap", "inswapper_128"): swapping(tmp_path / "swap.onnx", 128, "invert", shift=1.0),
        ("enhance", "gpen_256"): graphs.make(tmp_path / "enhance.onnx", "gpen_256"),
    }
    path = tmp_path / "models.toml"
    path.write_text("".join(f"{entry(*kind, file)}buckets = [1]\n" for kind, file in files.items()))
    return path


def test_enhancing_and_boosting_are_left_out_where_they_were_to_be_done(held, neural_manifest):
    server, go = held("no-enhancer", "smaller-boost", manifest=neural_manifest)

    def swap(*more):
        return server.form("/v1/swap", ("source", HOPPER), ("target", HOPPER), *more)

    with ThreadPoolExecutor(12) as clients:
        first = [clients.submit(swap) for _ in range(3)]
        eventually(lambda: server.service.waiting == 1)
        second = [clients.submit(swap, ("enhance", "0")) for _ in range(2)]
        eventually(lambda: server.service.waiting == 3)
        time.sleep(STEP_S)
        third = [clients.submit(swap) for _ in range(2)]
        found = clients.submit(faces, server)
        eventually(lambda: server.service.waiting == 6)
        go.set()
        answers = [each.result() for each in (*first, *second, *third)]
        assert found.result().headers["Ember-Degraded"] is None
    assert {answer.status for answer in answers} == {200}
    said = [answer.headers["Ember-Degraded"] for answer in answers]
    whole = said.index(None)  # two of the first three had places at once
    assert whole < 3
    assert "enhance" in answers[whole].headers["Server-Timing"]
    assert said[-1] == "no-enhancer, smaller-boost"
    for answer, degraded in zip(answers, said, strict=True):
        if degraded and "no-enhancer" in degraded:
            assert "enhance" not in answer.headers["Server-Timing"]
    assert all(
        "no-enhancer" not in (each or "") for each in said[3:5]
    )  # nothing was to be left out
    assert answers[-1].body != answers[whole].body


def test_bulk_is_refused_where_the_operator_wants_that_first(held):
    server, go = held("refuse-bulk")
    with ThreadPoolExecutor(8) as clients:
        waiting = [clients.submit(faces, server) for _ in range(4)]
        eventually(lambda: server.service.waiting == 2)
        refused = faces(server, "bulk")
        assert refused.problem("overloaded", 503)["lane"] == "bulk"
        assert int(refused.headers["Retry-After"]) >= 10
        waiting.append(clients.submit(faces, server, "interactive"))
        eventually(lambda: server.service.in_work == 3)  # there is a place for the urgent
        go.set()
        assert [each.result().status for each in waiting] == [200] * 5


def test_by_default_nothing_is_degraded(held):
    server, go = held()
    with ThreadPoolExecutor(8) as clients:
        waiting = [clients.submit(faces, server) for _ in range(8)]
        eventually(lambda: server.service.waiting == 6)
        go.set()
        answers = [each.result() for each in waiting]
    assert {(each.status, each.headers["Ember-Degraded"]) for each in answers} == {(200, None)}
