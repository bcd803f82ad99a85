"""All that is stored of a caller can be deleted; the receipt stands in the audit."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from function.admission import keys as api_keys
from function.background.in_memory import InMemoryRecords
from function.background.jobs.erasure import ENDING_S, Erasure
from function.background.jobs.files import FileBudget, InMemoryJobFiles
from function.background.jobs.job import JobSpec, key_of
from function.background.jobs.redis_files import RedisJobFiles
from function.background.jobs.store import JOBS, JobStore
from function.background.records import RecordStoreError
from function.background.redis_records import RedisRecords
from function.process.wiring.audit import kept_of_callers
from function.request_context import Entry, Lane, Sender
from function.settings.gate import GateSettings
from function.trust.audit.keyring import KEYLESS
from function.trust.audit.log import NoAudit
from function.trust.audit.sinks.folder import FolderSink
from function.trust.gate import kept_list
from function.trust.gate.identity_list import IdentityModel, new_person
from tests.function.background.jobs.conftest import finished, put, redis
from tests.function.cli.test_keys import ember
from tests.function.live import Live

from .chains import KEY, auditing, lines, report

__all__ = ["redis"]

SENDER = Sender(Entry.COMMAND, "request", "operator", "vip")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that knows callers and keeps an audit; its folder; and headers of two of them."""
    folder = tmp_path_factory.mktemp("erasure")
    made = {name: api_keys.new(name, "paid") for name in ("ann", "bob")}
    (folder / "keys").write_text("\n".join(line for _, line in made.values()))
    audit = folder / "audit"
    with Live(auth="keys", keys=folder / "keys", audit=audit.as_uri()) as server:
        headers = {name: {"Authorization": f"Bearer {key}"} for name, (key, _) in made.items()}
        yield server, audit, headers


def test_a_caller_deletes_what_is_stored_of_it_and_of_nobody_else(guarded):
    server, audit, headers = guarded
    for name in ("ann", "bob"):
        put(server, "a-job", **headers[name])
        put(server, "another", **headers[name])
    done = finished(server, "a-job", **headers["ann"])
    result = done["items"][0]["result"]["uri"]
    finished(server, "another", **headers["ann"])
    answer = server.send("DELETE", "/v1/data", headers=headers["ann"])
    receipt = answer.json
    assert answer.status == 200
    assert receipt["deleted"] == {"jobs": 2, "ending": 0}
    server.send("GET", result, headers=headers["ann"]).problem("not_found", 404)
    assert server.send("GET", "/v1/jobs", headers=headers["ann"]).json["jobs"] == []
    assert len(server.send("GET", "/v1/jobs", headers=headers["bob"]).json["jobs"]) == 2
    (line,) = [each for each in lines(audit) if each["kind"] == "deletion"]
    assert line["details"] == {
        "receipt": receipt["receipt"],
        "of": KEYLESS.digest(b"ann"),
        "digest": receipt["digest"],
        "jobs": 2,
        "ending": 0,
    }
    names = sorted(key_of("ann", name) for name in ("a-job", "another"))
    assert receipt["digest"] == KEYLESS.digest("\n".join(names).encode())
    assert line["request"] == answer.headers["Ember-Request-Id"]
    assert (line["entry"], line["tier"], line["caller"]) == ("http", "paid", KEYLESS.digest(b"ann"))


def test_what_cannot_be_written_down_is_not_answered(guarded, tmp_path):
    keys = guarded[0].settings.access.keys
    folder = tmp_path / "audit"
    with Live(auth="keys", keys=keys, audit=folder.as_uri(), warm=False) as server:
        assert server.send("DELETE", "/v1/data", headers=guarded[2]["bob"]).status == 200
        shutil.rmtree(folder)
        folder.write_text("a file in its place")
        answer = server.send("DELETE", "/v1/data", headers=guarded[2]["bob"])
        answer.problem("audit_unavailable", 503)
        assert answer.headers["Retry-After"] == "2"


def test_who_does_not_say_who_he_is_has_nothing_to_delete(live, guarded):
    live.send("DELETE", "/v1/data").problem("forbidden", 403)
    server, _, headers = guarded
    server.send("DELETE", "/v1/data").problem("unauthenticated", 401)
    server.send("DELETE", "/v1/data?all=1", headers=headers["bob"]).problem("unknown_field", 422)


@pytest.fixture
def stored():
    """A store of jobs and one of files."""
    return JobStore(InMemoryRecords()), InMemoryJobFiles(FileBudget(10**6))


async def filled(store, files, names, subject="ann"):
    """Queue jobs, with a photo each."""
    for name in names:
        spec = JobSpec(name, subject, "d", f"at-{subject}-{name}", Lane.BULK, 1e9)
        await store.open(spec, 2000, 3600)
        await files.put(spec.target(0), b"photo", 3600)


async def test_a_job_that_has_not_ended_is_cancelled_and_its_photos_go_at_once(stored):
    store, files = stored
    await filled(store, files, ["a"])
    ended = []

    async def end(key, keep_s):
        ended.append((key, keep_s))
        await store.end(key, keep_s)

    receipt = await Erasure(store, files, end, NoAudit()).erase("ann", SENDER)
    assert receipt.counts == {"jobs": 1, "ending": 1}
    assert ended == [(key_of("ann", "a"), ENDING_S)]
    assert files.held == 0
    assert (await store.get(key_of("ann", "a"))).state == "cancelled"


async def test_however_many_jobs_there_are_all_go(stored):
    store, files = stored
    await filled(store, files, map(str, range(1100)))
    await filled(store, files, ["b"], "bob")
    receipt = await Erasure(store, files, store.end, NoAudit()).erase("ann", SENDER)
    assert receipt.counts["jobs"] == 1100
    again = await Erasure(store, files, store.end, NoAudit()).erase("ann", SENDER)
    assert again.counts == {"jobs": 1100, "ending": 0}
    last = await Erasure(store, files, store.end, NoAudit()).erase("ann", SENDER)
    assert last.counts == {"jobs": 0, "ending": 0}
    assert files.held == len(b"photo")


async def test_what_else_is_kept_of_a_caller_goes_too_and_is_counted(stored, tmp_path):
    class Enrolments:
        name = "enrolments"

        async def erase(self, subject):
            return [f"{subject}-1", f"{subject}-2"]

    async with auditing(FolderSink(tmp_path, fsync=False)) as audit:
        erasure = Erasure(*stored, stored[0].end, audit, [Enrolments()])
        receipt = await erasure.erase("ann", SENDER)
    assert receipt.counts == {"jobs": 0, "ending": 0, "enrolments": 2}
    assert receipt.digest == KEY.digest(b"ann-1\nann-2")
    line = lines(tmp_path)[1]
    assert line["details"]["enrolments"] == 2
    assert line["caller"] == KEY.digest(b"operator")
    assert report(tmp_path).faults == ()


async def enrolled(uri):
    """A list with ann twice, and bob."""
    model, face = IdentityModel("face_identity_128", "ab" * 32), np.ones(4, np.float32)

    def added(people):
        for name in ("ann", "bob", "ann"):
            people = people.added(new_person(name, model, [face]))
        return people

    await kept_list.change(uri, kept_list.store_of(uri), added)


async def left(uri):
    return [each.label for each in (await kept_list.read(uri, kept_list.store_of(uri)))[0].people]


async def test_who_is_enrolled_under_his_own_name_is_taken_off(stored, tmp_path):
    uri = (tmp_path / "consent.jsonl").as_uri()
    await enrolled(uri)
    more = kept_of_callers(GateSettings(consent_list=uri))
    erasure = Erasure(*stored, stored[0].end, NoAudit(), more)
    assert (await erasure.erase("ann", SENDER)).counts["enrolments"] == 2
    assert await left(uri) == ["bob"]
    assert (await erasure.erase("ann", SENDER)).counts["enrolments"] == 0
    (tmp_path / "consent.jsonl").write_text("no list")
    with pytest.raises(RecordStoreError, match="enrolments"):
        await erasure.erase("bob", SENDER)
    assert kept_of_callers(GateSettings()) == ()


async def test_an_operator_forgets_a_caller(redis, tmp_path):
    store = JobStore(RedisRecords(redis.url, 2.0, JOBS))
    files = RedisJobFiles(redis.url, 2.0, FileBudget(10**6))
    await filled(store, files, ["a", "b"])
    settings = {"EMBER_REDIS_URL": redis.url, "EMBER_AUDIT": tmp_path.as_uri()}
    receipt = json.loads(ember("forget", "--subject", "ann", "--yes", **settings))
    assert receipt["deleted"] == {"jobs": 2, "ending": 2}
    assert await files.get("at-ann-a/target-0") is None
    start, line, stop = lines(tmp_path)
    assert (start["kind"], line["kind"], stop["kind"]) == ("start", "deletion", "stop")
    assert line["details"]["receipt"] == receipt["receipt"]
    assert line["entry"] == "command"
    assert "ann" not in json.dumps(line)
    await store.close()
    await files.close()


def test_an_operator_who_cannot_reach_jobs_is_told(free_port):
    assert "over HTTP" in ember("forget", "--subject", "ann", "--yes", code=78)
    url = f"redis://127.0.0.1:{free_port}/0"
    words = ("forget", "--subject", "ann", "--yes")
    assert "Call it again" in ember(*words, code=69, EMBER_REDIS_URL=url)
