"""Probes, warm-up and what is answered before, during and after it."""

from __future__ import annotations

import pytest

from function.admission import keys
from function.http.probes import RateLimit
from function.problems import Problem
from tests.function.live import COLLINS, SOURCE, TARGET, Live
from tests.function.raw import connection, head, read_answer
from warmup.retry import Retry


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
    assert told["models"] == dict.fromkeys(("detect", "landmarks", "identity", "gate"), waiting)
    assert told["waiting_for"]


def test_calls_are_refused_until_the_replica_is_ready(cold):
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
    assert models.keys() == {"detect", "landmarks", "identity", "gate"}
    for told in models.values():
        assert (told["state"], told["provider"]) == ("warmed", "CPUExecutionProvider")
        assert told["fetch"]["state"] == "ready"
        assert told["variant"] is None
    assert (answer.json["cold"], answer.json["degraded"]) == (False, [])
    assert cold.form("/v1/faces", ("image", COLLINS)).status == 200


@pytest.fixture
def live(live):
    """The server, as if nobody had forced a warm-up yet."""
    live.server.forced.next = 0.0
    return live


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


def test_force_again_and_again_leaves_the_replica_ready(live):
    assert live.send("POST", "/warmup?force=true").status == 200
    before = len(live.get("/warmup").json["steps"])
    for _ in range(20):
        answer = live.send("POST", "/warmup?force=true")
        members = answer.problem("too_often", 429)
        assert 1 <= int(answer.headers["Retry-After"]) <= members["limit"]
        assert live.get("/readyz").status == 200
    assert live.send("POST", "/warmup").status == 200  # which has nothing to do
    assert len(live.get("/warmup").json["steps"]) == before


def test_a_forced_warm_up_may_be_repeated_after_the_pause():
    seldom = RateLimit(60)
    seldom.check(100.0)
    for now in (100.0, 159.9):
        with pytest.raises(Problem) as raised:
            seldom.check(now)
    assert raised.value.headers["Retry-After"] == "1"
    seldom.check(160.0)
    with pytest.raises(Problem):
        seldom.check(200.0)


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via"])
def test_what_comes_by_a_proxy_forces_nothing_where_nobody_says_who_he_is(live, name):
    answer = live.send("POST", "/warmup?force=true", headers={name: "for=127.0.0.1"})
    answer.problem("forbidden", 403)
    assert live.send("POST", "/warmup", headers={name: "for=127.0.0.1"}).status == 200


def test_with_authentication_only_an_operator_forces_a_warm_up(tmp_path):
    made = {tier: keys.new(tier, tier) for tier in ("vip", "operator")}
    (tmp_path / "keys").write_text("\n".join(line for _, line in made.values()))
    sent = {tier: {"Authorization": f"Bearer {key}"} for tier, (key, _) in made.items()}
    with Live(auth="keys", keys=tmp_path / "keys") as server:
        before = len(server.get("/warmup").json["steps"])
        server.send("POST", "/warmup?force=true").problem("unauthenticated", 401)
        server.send("POST", "/warmup?force=true", headers=sent["vip"]).problem("forbidden", 403)
        assert len(server.get("/warmup").json["steps"]) == before
        assert server.send("POST", "/warmup").status == 200
        assert server.send("POST", "/warmup?force=true", headers=sent["operator"]).status == 200
        assert len(server.get("/warmup").json["steps"]) > before


def test_the_pause_after_a_failure_is_skipped_for_operators_only(tmp_path):
    key, line = keys.new("op", "operator")
    (tmp_path / "keys").write_text(line)
    failed = "no model could be had"
    with Live(auth="keys", keys=tmp_path / "keys", warm=False) as server:
        tries = []

        async def fail():
            tries.append(1)
            raise OSError(failed)

        server.replica.warmable = Broken(server.service, fail)
        server.replica.retry = Retry(total_s=86400, first_s=3600, most_s=3600)
        server.send("POST", "/warmup")  # the first try
        for _ in range(10):
            answer = server.send("POST", "/warmup")
            assert (answer.status, "Retry-After" in answer.headers) == (503, True)
        before = len(tries)
        operator = {"Authorization": f"Bearer {key}"}
        assert server.send("POST", "/warmup", headers=operator).status == 503
        assert len(tries) == before + 1


class Broken:
    """A service whose models cannot be had."""

    fetches, cold = True, True

    def __init__(self, service, fetch):
        self.fetch, self.load, self.warm = fetch, service.load, service.warm


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
    from function.process.wiring.service import embedded

    text = embedded().read_text()
    text = text[text.index("[[model]]") :]  # its golden photos lie elsewhere
    for file in (*embedded().parent.glob("*.onnx"), *embedded().parent.glob("*.npy")):
        (folder / file.name).write_bytes(file.read_bytes())
    damaged = next(folder.glob("*.onnx"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    (folder / "models.toml").write_text(text)
    return folder / "models.toml"
