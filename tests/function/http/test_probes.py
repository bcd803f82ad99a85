"""Probes, warm-up and what is answered before, during and after it."""

from __future__ import annotations

import pytest

from .live import COLLINS, SOURCE, TARGET, Live
from .raw import connection, head, read_answer


@pytest.fixture
def cold():
    with Live(warm=False) as server:
        yield server


def test_a_replica_that_is_not_ready_is_alive_and_says_what_it_waits_for(cold):
    assert cold.get("/healthz").json == {"status": "alive", "reason": None}
    answer = cold.get("/readyz")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    told = answer.json
    assert (told["ready"], told["cold"], told["phase"]) == (False, True, "starting")
    waiting = {"state": "waiting", "provider": None, "variant": None, "fetch": None}
    waiting["passed_over"] = []
    assert told["models"] == dict.fromkeys(("detect", "landmarks", "identity"), waiting)
    assert told["waiting_for"]


def test_calls_wait_outside_until_the_replica_is_ready(cold):
    for path, parts in (("/v1/swap", (SOURCE, TARGET)), ("/v1/faces", [("image", COLLINS)])):
        answer = cold.form(path, *parts)
        assert answer.problem("not_ready", 503)["phase"] == "starting"
        assert answer.headers["Retry-After"] == "1"


def test_warm_up_by_request_brings_the_replica_to_ready_once(cold):
    first, again = (cold.send("POST", "/warmup") for _ in range(2))
    assert (first.status, again.status) == (200, 200)
    phases = [step["phase"] for step in again.json["steps"]]
    assert phases == ["starting", "fetching", "loading", "warming", "ready"]
    assert first.json == again.json == cold.get("/warmup").json
    answer = cold.get("/readyz")
    assert answer.status == 200
    models = answer.json["models"]
    assert models.keys() == {"detect", "landmarks", "identity"}
    for told in models.values():
        assert (told["state"], told["provider"]) == ("warmed", "CPUExecutionProvider")
        assert told["fetch"]["state"] == "ready"
        assert told["variant"] is None
    assert (answer.json["cold"], answer.json["degraded"]) == (False, [])
    assert cold.form("/v1/faces", ("image", COLLINS)).status == 200


@pytest.mark.parametrize("force", ["true", "1", "TRUE", ""])
def test_force_repeats_the_warm_up(live, force):
    before = len(live.get("/warmup").json["steps"])
    answer = live.send("POST", f"/warmup?force={force}")
    assert answer.status == 200
    assert [step["phase"] for step in answer.json["steps"][before:]] == ["warming", "ready"]


def test_a_replica_that_warms_again_still_serves(live):
    with connection(live) as client:
        client.sendall(head("POST", "/warmup?force=true", {"Content-Length": 0}))
        assert live.form("/v1/faces", ("image", COLLINS)).status == 200
        assert read_answer(client).status == 200


def test_other_parameters_of_the_warm_up_are_refused(live):
    live.send("POST", "/warmup?force=perhaps").problem("bad_value", 422)
    members = live.send("POST", "/warmup?now=true").problem("unknown_field", 422)
    assert members["field"] == "now"


def test_a_failed_warm_up_is_told_and_nothing_is_served(tmp_path):
    with Live(warm=False, manifest=broken_manifest(tmp_path)) as server:
        answer = server.send("POST", "/warmup")
        assert (answer.status, answer.json["phase"]) == (503, "failed")
        assert answer.headers["Retry-After"] == "1"
        ready = server.get("/readyz")
        assert (ready.status, ready.json["phase"]) == (503, "failed")
        assert "sha256" in ready.json["last_error"]
        assert ready.json["last_error"] == server.get("/warmup").json["last_error"]
        assert str(tmp_path).encode() not in ready.body  # where things lie is nobody's business
        assert server.get("/healthz").status == 200
        members = server.form("/v1/faces", ("image", COLLINS)).problem("not_ready", 503)
        assert members["phase"] == "failed"


def test_a_draining_replica_is_not_ready_but_serves_and_keeps_no_connection():
    with Live() as server:
        server.loop.call_soon_threadsafe(server.replica.drain)
        ready = server.get("/readyz")
        assert (ready.status, ready.json["phase"]) == (503, "draining")
        answer = server.form("/v1/faces", ("image", COLLINS))
        assert answer.status == 200
        assert answer.headers["Connection"] == "close"
        assert server.get("/healthz").status == 200


def broken_manifest(folder):
    """The embedded manifest, but one model has another content than it says."""
    from function.assemble import embedded

    text = embedded().read_text()
    text = text[text.index("[[model]]") :]  # its golden photos lie elsewhere
    for file in embedded().parent.glob("*.onnx"):
        (folder / file.name).write_bytes(file.read_bytes())
    damaged = next(folder.glob("*.onnx"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    (folder / "models.toml").write_text(text)
    return folder / "models.toml"
