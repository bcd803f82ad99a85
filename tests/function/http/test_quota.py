"""Tokens over real HTTP: taken before the queue, refunded where no work began, granted, shared."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from function.admission import keys
from function.admission.policy import BUILT_IN
from function.service import work
from tests.function.admission.redis_server import RedisServer
from tests.function.live import COLLINS, FORM, HOPPER, NOBODY, SOURCE, TARGET, Live, multipart
from tests.function.raw import connection, eventually, head

TINY = multipart(SOURCE, TARGET)
SWAP = FORM | {"Content-Length": len(TINY)}


@pytest.fixture(scope="module")
def bearer(tmp_path_factory):
    """Credentials by subject; the subject is also the tier, but for its number."""
    path = tmp_path_factory.mktemp("keys") / "keys"
    tiers = ("free", "paid", "vip", "operator")
    made = {f"{tier}{n}": keys.new(f"{tier}{n}", tier) for tier in tiers for n in range(12)}
    path.write_text("\n".join(line for _, line in made.values()))
    return {"file": path} | {name: f"Bearer {key}" for name, (key, _) in made.items()}


@pytest.fixture(scope="module")
def guarded(bearer):
    with Live(auth="keys", keys=bearer["file"]) as server:
        yield server


@pytest.fixture
def single(monkeypatch, bearer):
    """A server of one thread that does not decode before it is let go, and what lets it go."""
    go, decode = threading.Event(), work.decode
    with Live(threads=1, queue_limit=1, auth="keys", keys=bearer["file"]) as server:
        monkeypatch.setattr(work, "decode", lambda *a, **k: go.wait(60) and decode(*a, **k))
        yield server, go
        go.set()


def swap(server, credentials, *parts, **headers):
    return server.form(
        "/v1/swap", *(parts or (SOURCE, TARGET)), Authorization=credentials, **headers
    )


def quota(server, credentials):
    answer = server.get("/v1/quota", Authorization=credentials)
    assert answer.status == 200
    return answer.json


def grant(server, credentials, subject, tokens, key, **more):
    headers = {"Authorization": credentials, "Idempotency-Key": key}
    body = json.dumps({"tokens": tokens, **more}).encode()
    headers["Content-Type"] = "application/json"
    return server.send("POST", f"/v1/quota/{subject}/grants", body, headers)


def test_callers_without_authentication_have_no_quota(live):
    assert live.get("/v1/quota").json == {
        "subject": None, "tier": "anonymous", "lane": "standard", "unlimited": True,
    }  # fmt: skip
    answer = live.form("/v1/swap", SOURCE, TARGET)
    assert answer.status == 200
    assert answer.headers["RateLimit"] is None


def test_a_swap_costs_what_its_target_does_and_says_what_is_left(guarded, bearer):
    answer = swap(guarded, bearer["free0"])
    assert answer.status == 200
    assert answer.headers["RateLimit-Policy"] == '"free";q=10;w=3600'
    left, refill_s = re.fullmatch(r'"free";r=(\d+);t=(\d+)', answer.headers["RateLimit"]).groups()
    assert (left, 3590 < int(refill_s) <= 3600) == ("9", True)
    told = quota(guarded, bearer["free0"])
    assert (told["tokens"], told["allowance"], told["period_s"]) == (9, 10, 3600)


def test_ten_tokens_are_ten_small_swaps_and_then_the_refusal_says_when_there_are_more(
    guarded, bearer
):
    statuses = [swap(guarded, bearer["free1"]).status for _ in range(10)]
    assert statuses == [200] * 10
    answer = swap(guarded, bearer["free1"])
    members = answer.problem("quota_exhausted", 429)
    assert (members["value"], members["limit"]) == (1, 0)
    assert 3500 < int(answer.headers["Retry-After"]) <= 3600
    assert answer.headers["RateLimit"].startswith('"free";r=0;t=')
    assert swap(guarded, bearer["free2"]).status == 200


def test_a_job_that_is_larger_than_the_tier_is_told_that_waiting_is_no_use(guarded, bearer):
    from tests.function.live import png

    answer = swap(guarded, bearer["free3"], SOURCE, ("target", png(4000, 3000)))
    answer.problem("quota_exhausted", 429)
    assert answer.headers["Retry-After"] is None
    assert quota(guarded, bearer["free3"])["tokens"] == 10


def test_a_tier_without_an_allowance_swaps_as_often_as_it_likes(guarded, bearer):
    assert quota(guarded, bearer["vip0"])["unlimited"] is True
    answer = swap(guarded, bearer["vip0"])
    assert (answer.status, answer.headers["RateLimit"]) == (200, None)


def test_finding_faces_costs_a_token_unless_the_policy_says_otherwise(guarded, bearer, tmp_path):
    look = ("image", HOPPER)
    assert guarded.form("/v1/faces", look, Authorization=bearer["free4"]).status == 200
    assert quota(guarded, bearer["free4"])["tokens"] == 9
    policy = tmp_path / "policy.toml"
    policy.write_text(re.sub("look = 1", "look = 4", BUILT_IN.read_text()))
    with Live(auth="keys", keys=bearer["file"], policy=policy) as server:
        statuses = [
            server.form("/v1/faces", look, Authorization=bearer["free4"]).status for _ in range(3)
        ]
    assert statuses == [200, 200, 429]


def test_what_is_refused_before_the_photos_are_known_costs_nothing(guarded, bearer):
    swap(guarded, bearer["free5"], SOURCE).problem("missing_field")
    swap(guarded, bearer["free5"], SOURCE, TARGET, Accept="text/html").problem("not_acceptable")
    swap(guarded, bearer["free5"], SOURCE, TARGET, ("quality", "0")).problem("bad_value")
    assert quota(guarded, bearer["free5"])["tokens"] == 10


def test_a_failure_after_work_has_begun_is_not_refunded(guarded, bearer):
    swap(guarded, bearer["free6"], SOURCE, ("target", NOBODY)).problem("no_face")
    swap(guarded, bearer["free6"], SOURCE, ("target", COLLINS[:3000])).problem("bad_image")
    assert quota(guarded, bearer["free6"])["tokens"] == 8


def test_a_request_that_waits_in_vain_gets_its_tokens_back(single, bearer):
    """By a deadline and by going away, while others hold all places."""
    server, go = single
    with ThreadPoolExecutor(4) as clients:
        held = [clients.submit(swap, server, bearer["vip1"]) for _ in range(2)]
        eventually(lambda: server.service.in_work == 2)
        late = swap(server, bearer["free7"], Request_Timeout="0.3")
        late.problem("deadline_exceeded", 504)
        eventually(lambda: quota(server, bearer["free7"])["tokens"] == 10)
        with connection(server) as client:
            client.sendall(
                head("POST", "/v1/swap", SWAP | {"Authorization": bearer["free7"]}) + TINY
            )
            eventually(lambda: server.service.waiting == 1)
            assert quota(server, bearer["free7"])["tokens"] == 9
        eventually(lambda: quota(server, bearer["free7"])["tokens"] == 10)
        go.set()
        assert [each.result().status for each in held] == [200] * 2
    scrape = server.get("/metrics").body.decode()
    assert 'ember_quota_events_total{event="refunded"} 2.0' in scrape
    assert 'ember_quota_tokens_total{event="taken"} 2.0' in scrape


def test_a_request_that_ends_while_it_is_worked_on_gets_no_tokens_back(single, bearer):
    server, go = single
    late = swap(server, bearer["free8"], Request_Timeout="0.3")
    late.problem("deadline_exceeded", 504)
    go.set()
    assert quota(server, bearer["free8"])["tokens"] == 9


def test_a_request_that_a_full_queue_refuses_pays_nothing(single, bearer):
    server, go = single
    with ThreadPoolExecutor(4) as clients:
        for _ in range(3):
            clients.submit(swap, server, bearer["free9"])
        eventually(lambda: server.service.waiting == 1)
        swap(server, bearer["free10"]).problem("overloaded", 503)
        go.set()
    assert quota(server, bearer["free10"])["tokens"] == 10


def test_only_an_operator_grants_tokens(guarded, bearer):
    for name in ("free11", "paid11", "vip11"):
        grant(guarded, bearer[name], name, 5, "one").problem("forbidden", 403)


def test_a_grant_is_made_once_and_leaves_a_line_in_the_log(guarded, bearer, caplog):
    caplog.set_level("INFO", "ember.audit")
    answer = grant(guarded, bearer["operator0"], "free11", 7, "ticket-1", reason="a failed swap")
    told = {"subject": "free11", "tokens": 7, "granted": 7}
    assert answer.json == told | {"repeated": False}
    again = grant(guarded, bearer["operator0"], "free11", 7, "ticket-1")
    assert again.json == told | {"repeated": True}
    grant(guarded, bearer["operator0"], "free11", 8, "ticket-1").problem("bad_value", 422)
    assert quota(guarded, bearer["free11"])["tokens"] == 17
    line = next(each for each in caplog.records if each.name == "ember.audit")
    assert (line.operator, line.subject, line.tokens, line.key, line.reason, line.before) == (
        "operator0", "free11", 7, "ticket-1", "a failed swap", None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "tokens", "key", "code"),
    [
        ("ann", 0, "k", "bad_value"),
        ("ann", -5, "k", "bad_value"),
        ("ann", 1.5, "k", "bad_value"),
        ("ann", "5", "k", "bad_value"),
        ("ann", 10**7, "k", "bad_value"),
        ("ann", 5, "", "bad_request"),
        ("ann", 5, "two words", "bad_request"),
        ("ann", 5, "x" * 129, "bad_request"),
        ("two%20words", 5, "k", "not_found"),
        ("%C3%A4", 5, "k", "not_found"),
        ("x" * 256, 5, "k", "not_found"),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused(guarded, bearer, subject, tokens, key, code):
    grant(guarded, bearer["operator1"], subject, tokens, key).problem(code)


def test_any_subject_that_a_key_may_have_can_be_granted_tokens(guarded, bearer):
    answer = grant(guarded, bearer["operator1"], "a%2Fb%7Cc%25", 5, "k")
    assert answer.json["subject"] == "a/b|c%"


@pytest.fixture
def redis_server(needs, free_port, tmp_path):
    with RedisServer(needs("redis-server"), free_port, "--dir", str(tmp_path)) as server:
        yield server


def test_two_replicas_count_together(redis_server, bearer):
    shared = {"auth": "keys", "keys": bearer["file"], "redis_url": redis_server.url}
    with Live(**shared) as one, Live(**shared) as other:
        with ThreadPoolExecutor(8) as clients:
            done = [
                clients.submit(swap, (one, other)[number % 2], bearer["free0"])
                for number in range(14)
            ]
            statuses = sorted(each.result().status for each in done)
        assert statuses == [200] * 10 + [429] * 4
        grant(one, bearer["operator0"], "free0", 2, "k")
        assert quota(other, bearer["free0"])["tokens"] == 2


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_while_redis_is_away_quota_fail_open_lets_in_and_closed_keeps_out(
    redis_server, bearer, fault
):
    shared = {"auth": "keys", "keys": bearer["file"], "redis_url": redis_server.url}
    with (
        Live(**shared, quota_fail="open") as lenient,
        Live(**shared, quota_fail="closed") as strict,
    ):
        assert [swap(each, bearer["paid0"]).status for each in (lenient, strict)] == [200] * 2
        getattr(redis_server, fault)()
        for _ in range(5):
            answer = swap(lenient, bearer["paid0"])
            assert (answer.status, answer.headers["RateLimit"]) == (200, None)
            refused = swap(strict, bearer["paid0"])
            refused.problem("quota_unavailable", 503)
            total_ms = float(refused.headers["Server-Timing"].rpartition("=")[2])
            assert total_ms < 5000
        assert swap(strict, bearer["vip0"]).status == 200  # whose tokens nobody counts
        scrape = lenient.get("/metrics").body.decode()
        assert "ember_quota_store_down 1.0" in scrape
        assert 'ember_quota_events_total{event="undecided"} 5.0' in scrape
        redis_server.start() if fault == "kill" else redis_server.resume()
        eventually(lambda: swap(strict, bearer["paid0"]).status == 200)
        eventually(lambda: swap(lenient, bearer["paid0"]).headers["RateLimit"])
        assert "ember_quota_store_down 0.0" in lenient.get("/metrics").body.decode()
