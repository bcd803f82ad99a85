"""Whose jobs are whose, what they cost, what comes back, and in which lane they wait."""

from __future__ import annotations

import time

import pytest

from function.admission import keys
from function.admission.policy import BUILT_IN
from tests.function.live import HOPPER, NOBODY, SOURCE, TARGET, Live
from tests.function.raw import eventually

from .conftest import finished, put


@pytest.fixture(scope="module")
def bearer(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys"
    made = {
        name: keys.new(name, name[:-1]) for name in ("free1", "free2", "free3", "paid1", "vip1")
    }
    path.write_text("\n".join(line for _, line in made.values()))
    return {"file": path} | {name: f"Bearer {key}" for name, (key, _) in made.items()}


@pytest.fixture(scope="module")
def guarded(bearer):
    with Live(auth="keys", keys=bearer["file"]) as server:
        yield server


@pytest.fixture
def held(holding, bearer):
    """A server that knows callers and does nothing before it is let go, and what lets it go."""
    with holding(auth="keys", keys=bearer["file"]) as server:
        yield server


def tokens(server, credentials):
    return server.get("/v1/quota", Authorization=credentials).json.get("tokens")


def test_an_anonymous_caller_has_no_jobs(guarded):
    for method, path in (("PUT", "/v1/jobs/a"), ("GET", "/v1/jobs/a"), ("GET", "/v1/jobs"),
                         ("DELETE", "/v1/jobs/a"), ("GET", "/v1/jobs/a/results/0"),
                         ("GET", "/v1/jobs/a/events")):  # fmt: skip
        guarded.send(method, path).problem("unauthenticated", 401)


def test_no_caller_sees_or_ends_the_jobs_of_others(guarded, bearer):
    mine, other = {"Authorization": bearer["vip1"]}, {"Authorization": bearer["free1"]}
    put(guarded, "same-name", **mine)
    done = finished(guarded, "same-name", **mine)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/results/0"), ("GET", "/events")):
        answer = guarded.send(method, f"/v1/jobs/same-name{path}", headers=other)
        answer.problem("not_found", 404)
    assert put(guarded, "same-name", SOURCE, ("target", NOBODY), **other).status == 201
    assert guarded.get(done["items"][0]["result"]["uri"], **mine).status == 200
    assert finished(guarded, "same-name", **other)["state"] == "failed"
    names = [job["id"] for job in guarded.get("/v1/jobs", **other).json["jobs"]]
    assert names == ["same-name"]


def test_the_list_of_jobs_has_pages(guarded, bearer):
    mine = {"Authorization": bearer["paid1"]}
    for number in range(3):
        put(guarded, f"page-{number}", **mine)
    first = guarded.get("/v1/jobs?count=2", **mine).json
    assert [job["id"] for job in first["jobs"]] == ["page-2", "page-1"]
    second = guarded.get(f"/v1/jobs?count=2&start={first['next']}", **mine).json
    assert ([job["id"] for job in second["jobs"]], second["next"]) == (["page-0"], None)
    for query in ("count=0", "count=201", "start=-1", "start=x"):
        guarded.get(f"/v1/jobs?{query}", **mine).problem("bad_value", 422)
    guarded.get("/v1/jobs?page=2", **mine).problem("unknown_field", 422)


def test_a_job_costs_what_a_swap_costs_and_a_batch_less_for_each(guarded, bearer, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(BUILT_IN.read_text().replace("tokens = 1 }", "tokens = 10 }"))
    with Live(auth="keys", keys=bearer["file"], policy=policy) as server:
        mine = {"Authorization": bearer["paid1"]}
        answer = put(server, "one", **mine)
        assert answer.json["tokens"] == 10
        assert answer.headers["RateLimit"].startswith('"paid";r=40;')
        put(server, "one", **mine)
        assert tokens(server, bearer["paid1"]) == 40  # the same job is paid for once
        three = (SOURCE, TARGET, TARGET, ("target", HOPPER))
        assert put(server, "three", *three, **mine).json["tokens"] == 24
        answer = put(server, "much", SOURCE, *[TARGET] * 3, **mine)
        assert answer.problem("quota_exhausted", 429)["value"] == 24
        assert server.send("GET", "/v1/jobs/much", headers=mine).status == 404


def test_cancelling_refunds_targets_that_were_not_started(held, bearer):
    server, go = held
    mine = {"Authorization": bearer["free2"]}
    put(server, "a", SOURCE, *[TARGET] * 6, **mine)
    assert tokens(server, bearer["free2"]) == 4
    slots = server.service.slots
    begun = eventually_begun(server, "a", slots, mine)
    server.send("DELETE", "/v1/jobs/a", headers=mine)
    eventually(lambda: tokens(server, bearer["free2"]) == 10 - begun)
    server.send("DELETE", "/v1/jobs/a", headers=mine)
    assert tokens(server, bearer["free2"]) == 10 - begun
    go.set()


def eventually_begun(server, name, count, headers):
    def begun():
        items = server.send("GET", f"/v1/jobs/{name}", headers=headers).json["items"]
        return sum(item["state"] == "running" for item in items)

    eventually(lambda: begun() >= count)
    return begun()


def test_a_job_is_bulk_unless_it_asks_for_more_than_its_tier_forbids(held, bearer):
    server, _ = held
    mine = {"Authorization": bearer["vip1"]}
    assert put(server, "a", **mine).json["lane"] == "bulk"
    urgent = put(server, "b", **mine, **{"Ember-Lane": "interactive"})
    assert urgent.json["lane"] == "interactive"
    answer = put(server, "c", Authorization=bearer["free3"], **{"Ember-Lane": "standard"})
    answer.problem("forbidden", 403)


def test_a_policy_may_give_a_tier_another_lane_for_jobs(bearer, tmp_path):
    policy = tmp_path / "policy.toml"
    text = BUILT_IN.read_text()
    policy.write_text(text.replace("[tiers.vip]", '[tiers.vip]\njobs = "standard"'))
    with Live(auth="keys", keys=bearer["file"], policy=policy) as server:
        assert put(server, "a", Authorization=bearer["vip1"]).json["lane"] == "standard"


def test_a_job_beyond_the_limits_is_refused_and_costs_nothing(holding, bearer):
    mine = {"Authorization": bearer["free3"]}
    known = {"auth": "keys", "keys": bearer["file"]}
    with holding(**known, job_limit=1) as (server, _):
        put(server, "first", **mine)
        answer = put(server, "second", **mine)
        assert answer.problem("overloaded", 503)["setting"] == "EMBER_JOB_LIMIT"
        assert int(answer.headers["Retry-After"]) >= 1
        eventually(lambda: tokens(server, bearer["free3"]) == 9)
        assert server.send("GET", "/v1/jobs/second", headers=mine).status == 404
    with holding(**known, job_bytes=100_000) as (server, _):
        answer = put(server, "first", **mine)
        assert answer.problem("overloaded", 503)["setting"] == "EMBER_JOB_BYTES"
        eventually(lambda: tokens(server, bearer["free3"]) == 10)
        assert server.server.jobs.files.held == 0


def test_a_job_has_no_deadline_of_the_request_that_made_it(held, bearer):
    server, go = held
    mine = {"Authorization": bearer["vip1"]}
    put(server, "a", **mine, **{"Request-Timeout": "0.5"})
    time.sleep(0.8)
    go.set()
    assert finished(server, "a", **mine)["state"] == "succeeded"
