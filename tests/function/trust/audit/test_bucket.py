"""Windows of the audit in a bucket, against a server that speaks Google Cloud Storage's API."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from google.cloud import storage

from function.problems import RetryLaterError
from function.trust.audit.bucket import BucketUploads, heads, name_of
from function.trust.audit.chain import new_chain
from function.trust.audit.line import AuditFile
from function.trust.audit.sinks.spool import Spool, SpoolLimits, left_over, windows
from tests.warmup.objects.gcs import fake_gcs
from warmup.objects.gcs import GcsStore

from .chains import auditing, report, swap

LIMITS = SpoolLimits(window_s=60.0, most_bytes=10**6, fsync=True)


class Clock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def server():
    with fake_gcs("audit") as bucket:
        yield bucket


@pytest.fixture
def base(server, request):
    """A place of its own for each test."""
    return f"gs://audit/{request.node.name[:40]}/"


@pytest.fixture
async def store(server):
    store = GcsStore(5.0)
    yield store
    await store.close()


async def found(store, base):
    """All objects of a place."""
    return [
        AuditFile(
            base, uri, (await store.read(uri, 10**7, lambda _: None)).data.splitlines(True), True
        )
        for uri in await store.names(base)
    ]


def uploads(spool, base):
    return BucketUploads(spool, GcsStore(5.0), base)


async def test_a_window_is_an_object_that_says_what_it_has(tmp_path, store, base):
    clock = Clock()
    spool = Spool(tmp_path, LIMITS, clock)
    async with auditing(spool, uploads=uploads(spool, base)) as audit:
        await audit.write(swap("a"))
        clock.now = 59.0
        await audit.write(swap("b"))
        clock.now = 60.0
        await audit.write(swap("c"))
    names = [unquote(uri.removeprefix(base)) for uri in await store.names(base)]
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    assert [name.split("-")[5:7] for name in names] == [
        ["0000000000", "0000000002"], ["0000000003", "0000000004"]
    ]  # fmt: skip
    assert all(name.startswith(f"{day}/") and audit.chain in name for name in names)
    result = report(await found(store, base))
    assert (result.lines, result.faults, result.notes) == (5, (), ())
    assert list(tmp_path.iterdir()) == []


async def test_a_window_is_brought_when_its_time_is_over_though_nothing_more_comes(
    tmp_path, store, base
):
    clock = Clock()
    spool = Spool(tmp_path, LIMITS, clock)
    async with auditing(spool, uploads=uploads(spool, base)) as audit:
        await audit.write(swap("a"))
        clock.now = 60.0
        async with asyncio.timeout(20):
            while not await store.names(base):
                await asyncio.sleep(0.05)
        assert report(await found(store, base)).faults == ()


async def test_a_start_after_others_tells_how_far_they_were(tmp_path, store, base):
    for name in ("one", "two"):
        spool = Spool(tmp_path / name, LIMITS)
        async with auditing(spool, uploads=uploads(spool, base)) as audit:
            await audit.write(swap("a"))
            if name == "two":
                async with asyncio.timeout(20):
                    while not (tmp_path / name).exists() or "witness" not in "".join(
                        path.read_text() for path in (tmp_path / name).glob("*.jsonl")
                    ):
                        await asyncio.sleep(0.02)
    every = await found(store, base)
    assert report(every).faults == ()
    lost, kept = every
    if b"witness" in b"".join(lost.lines):
        lost, kept = kept, lost
    (fault,) = report([kept]).faults
    assert "the chain is missing" in str(fault)
    assert kept.name in str(fault)


async def test_how_far_chains_are_is_known_from_names_however_old(store, base):
    assert await heads(store, base) == []
    old, new = "20200101T000000Z-" + "0" * 16, new_chain()
    for day, chain, last in (("2020-01-01", old, 3), ("2020-01-01", old, 7)):
        name = f"{day}/000000-{chain}-{last - 1:010d}-{last:010d}-{last:016x}.jsonl"
        await store.write(
            base + name, b"", media_type="text/plain", metadata={}, if_generation_match=0
        )
    assert [(head.chain, head.seq) for head in await heads(store, base)] == [(old, 7)]
    now = datetime.now(UTC)
    name = f"{now:%Y-%m-%d/%H%M%S}-{new}-0000000000-0000000001-{1:016x}.jsonl"
    await store.write(base + name, b"", media_type="text/plain", metadata={}, if_generation_match=0)
    assert [(head.chain, head.seq) for head in await heads(store, base)] == [(new, 1)]


async def test_what_was_brought_once_is_not_there_twice(tmp_path, store, base):
    """The answer of a try was lost, or a process was killed before it deleted the window."""
    spool = Spool(tmp_path / "spool", LIMITS)
    async with auditing(spool) as audit:
        await audit.write(swap("a"))
    path = spool.next()
    copy = path.read_bytes()
    first = uploads(spool, base)
    await first._own()
    path.write_bytes(copy)
    spool._ended.append(path)
    await first.finish(5.0)
    assert len(await store.names(base)) == 1
    assert report(await found(store, base)).faults == ()


async def test_another_object_in_its_place_is_kept_and_found(tmp_path, store, base):
    spool = Spool(tmp_path, LIMITS)
    async with auditing(spool) as audit:
        await audit.write(swap("a"))
    uri = base + name_of(spool.next().read_bytes())
    await store.write(uri, b"x\n", media_type="text/plain", metadata={}, if_generation_match=0)
    await uploads(spool, base).finish(5.0)
    assert len(await store.names(base)) == 2
    assert "is no line of an audit" in str(report(await found(store, base)).faults)


async def test_a_bucket_that_is_away_loses_nothing(tmp_path, base, monkeypatch, free_port, store):
    """Lines wait in the spool, up to a bound; then it is refused; the next process brings them."""
    spool = Spool(tmp_path, SpoolLimits(60.0, 3000, fsync=False))
    with monkeypatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{free_port}")
        async with auditing(spool, uploads=uploads(spool, base)) as audit:
            await audit.write(swap("a"))
            with pytest.raises(RetryLaterError):
                await asyncio.gather(*(audit.write(swap("a")) for _ in range(10)))
    assert len(list(windows(tmp_path, audit.chain))) == 1
    next_spool = Spool(tmp_path, LIMITS)
    async with auditing(next_spool, uploads=uploads(next_spool, base)) as audit:
        await audit.write(swap("b"))
    result = report(await found(store, base))
    assert result.faults == ()
    assert (result.chains, result.lines > 4) == (2, True)
    assert list(tmp_path.iterdir()) == []


async def test_windows_of_a_process_that_lives_are_left_alone(tmp_path):
    one, two = Spool(tmp_path, LIMITS), Spool(tmp_path, LIMITS)
    one.open("one")
    two.open("two")
    one.append(b"{}\n", 0)
    with left_over(tmp_path, "two") as mine:
        assert mine == []
    one.close()
    one.release()
    with left_over(tmp_path, "two") as mine:
        assert [path.name for path in mine] == ["one.0000000000.jsonl"]
        with left_over(tmp_path, "three") as others:
            assert others == []
        mine[0].unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["two.lock"]
    two.release()


async def test_half_a_line_of_a_killed_process_is_not_brought(tmp_path, store, base):
    dead = Spool(tmp_path, LIMITS)
    async with auditing(dead) as audit:
        await audit.write(swap("a"))
    path = dead.next()
    with path.open("ab") as file:
        file.write(b'{"half')
    whole = path.read_bytes()[:-6]
    dead.release()
    spool = Spool(tmp_path, LIMITS)
    spool.open(new_chain())
    other = uploads(spool, base)
    await other._left_over()
    await other.finish(5.0)
    (object_,) = await found(store, base)
    assert b"".join(object_.lines) == whole
    assert json.loads(object_.lines[-1])["kind"] == "stop"


async def test_names_are_those_of_a_place_in_order_and_from_a_start(server, store):
    for name in ("n/b c", "n/a", "n/c", "other/x", "na"):
        storage.Client().bucket("audit").blob(name).upload_from_string(b"")
    assert await store.names("gs://audit/n/") == [f"gs://audit/n/{x}" for x in ("a", "b%20c", "c")]
    assert await store.names("gs://audit/n/", "b") == ["gs://audit/n/b%20c", "gs://audit/n/c"]
    assert await store.names("gs://audit/none/") == []
