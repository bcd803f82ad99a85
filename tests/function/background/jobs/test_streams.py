"""Streams about jobs: how many there may be, and what they cost whoever is asked."""

from __future__ import annotations

import asyncio
import gc
from contextlib import ExitStack

import pytest

from function.admission import keys
from function.background.in_memory import InMemoryRecords
from function.background.jobs.job import JobSpec
from function.background.jobs.store import JOBS, JobStore
from function.background.jobs.stream_limits import StreamLimits, TooManyStreamsError
from function.background.redis_records import RedisRecords
from function.request_context import Lane
from tests.function.live import SOURCE, TARGET
from tests.function.raw import connection, eventually, head

from .conftest import new_id, put, state

GONE = b"0\r\n\r\n"


@pytest.fixture(scope="module")
def bearer(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys"
    made = {name: keys.new(name, "vip") for name in ("ann", "bob")}
    path.write_text("\n".join(line for _, line in made.values()))
    found = {name: {"Authorization": f"Bearer {key}"} for name, (key, _) in made.items()}
    return {"file": path} | found


def opened(stack, server, name, headers=None):
    """A stream about a job, once its first bytes are there."""
    client = stack.enter_context(connection(server))
    client.sendall(head("GET", f"/v1/jobs/{name}/events", headers or {}))
    assert client.recv(15).startswith(b"HTTP/1.1 200")
    return client


def stream(server, name, headers=None):
    """The answer to who wants a stream, where there is none."""
    return server.send("GET", f"/v1/jobs/{name}/events", headers=headers or {})


def rest(client):
    """All that comes until the stream ends."""
    found = b""
    while not found.endswith(GONE):
        data = client.recv(65536)
        assert data
        found += data
    return found


def test_each_caller_has_a_limit_of_streams_of_its_own(holding, bearer):
    limits = {"job_caller_streams": 3, "job_streams": 100}
    with (
        holding(auth="keys", keys=bearer["file"], **limits) as (server, go),
        ExitStack() as stack,
    ):
        for who in ("ann", "bob"):
            for name in ("first", "second"):
                assert put(server, name, SOURCE, TARGET, **bearer[who]).status == 201
        mine = [opened(stack, server, ("first", "second")[n % 2], bearer["ann"]) for n in range(3)]
        refused = stream(server, "second", bearer["ann"]).problem("too_many", 429)
        assert (refused["limit"], refused["setting"]) == (3, "EMBER_JOB_CALLER_STREAMS")
        assert int(stream(server, "first", bearer["ann"]).headers["Retry-After"]) >= 1
        opened(stack, server, "first", bearer["bob"])
        mine[0].close()
        eventually(lambda: stream_opens(server, bearer["ann"]))
        go.set()
        for client in mine[1:]:
            assert b"event: succeeded" in rest(client)
        eventually(lambda: state(server, "second", **bearer["ann"]) == "succeeded")
        assert stream(server, "second", bearer["ann"]).status == 200  # the streams are free again


def stream_opens(server, headers):
    with connection(server) as client:
        client.sendall(head("GET", "/v1/jobs/first/events", headers))
        return client.recv(15).startswith(b"HTTP/1.1 200")


def test_anonymous_callers_share_one_limit_of_streams(holding):
    with holding(job_streams=5, job_caller_streams=1) as (server, _), ExitStack() as stack:
        name, other = new_id(), new_id()
        put(server, name)
        put(server, other)
        for number in range(5):
            opened(stack, server, (name, other)[number % 2])
        refused = stream(server, name).problem("overloaded", 503)
        assert (refused["limit"], refused["setting"]) == (5, "EMBER_JOB_STREAMS")
        assert server.get("/healthz").status == 200


def test_however_many_listen_the_store_is_asked_once(holding, monkeypatch):
    monkeypatch.setattr("function.background.jobs.changes._LOOK_S", 0.02)
    with holding(queue_limit=1000) as (server, go), ExitStack() as stack:
        names = [new_id() for _ in range(3)]
        for name in names:
            put(server, name)
        eventually(lambda: "running" in [state(server, name) for name in names])
        clients = [opened(stack, server, names[number % 3]) for number in range(120)]
        asked, store = [], server.server.jobs.store
        for what in ("get", "ahead", "changed"):
            monkeypatch.setattr(store, what, counting(asked, what, getattr(store, what)))
        eventually(lambda: asked.count("changed") > 20)
        assert "get" not in asked
        assert "ahead" not in asked
        go.set()
        for client in clients:
            assert b"event: succeeded" in rest(client)
        changes = sum(server.get(f"/v1/jobs/{name}").json["version"] for name in names)
        assert asked.count("ahead") <= changes  # not once for each who listens


def counting(asked, what, method):
    async def counted(*arguments):
        asked.append(what)
        return await method(*arguments)

    return counted


async def test_a_worker_renews_its_lease_however_many_ask(lasting_redis):
    """Renewing a lease does not wait behind those who only look."""
    store = JobStore(RedisRecords(lasting_redis.url, 2.0, JOBS))
    spec = JobSpec("a", "ann", "digest", "at", Lane.BULK, 1.5)
    await store.open(spec, 10, 60)
    taken = await store.take(list(Lane), 30)
    assert await store.renew(spec.key, taken.token, 30)
    crowd = [asyncio.create_task(store.get(spec.key)) for _ in range(2000)]
    await asyncio.sleep(0)
    assert await store.renew(spec.key, taken.token, 30)
    assert sum(each.done() for each in crowd) < 1000
    assert all(await asyncio.gather(*crowd))
    await store.close()


def test_a_stream_is_free_again_when_it_is_released_or_lost():
    limits = StreamLimits(3, 2)
    taken = [limits.take("ann"), limits.take("ann")]
    with pytest.raises(TooManyStreamsError) as refused:
        limits.take("ann")
    assert refused.value.own
    other = limits.take("bob")
    with pytest.raises(TooManyStreamsError) as refused:
        limits.take("cid")
    assert not refused.value.own
    taken.pop().release()
    taken.clear()
    other.release()
    other.release()
    del other
    gc.collect()
    assert len(limits) == 0
    assert [limits.take(None) for _ in range(3)]


async def test_changes_are_found_in_both_stores(lasting_redis):

    for store in (
        JobStore(InMemoryRecords()),
        JobStore(RedisRecords(lasting_redis.url, 2.0, JOBS)),
    ):
        specs = [JobSpec(name, "eve", "digest", name, Lane.BULK, 1.5) for name in "xyz"]
        jobs = [(await store.open(spec, 100, 60)).job for spec in specs]
        known = {job.spec.key: job.version for job in jobs}
        assert await store.changed(known) == {}
        await store.end(specs[0].key, 60)
        await store.forget(specs[1].key)
        found = await store.changed(known)
        assert found.keys() == {specs[0].key, specs[1].key}
        assert found[specs[0].key] == await store.get(specs[0].key)
        assert found[specs[1].key] is None
        assert await store.changed({}) == {}
        await store.close()
