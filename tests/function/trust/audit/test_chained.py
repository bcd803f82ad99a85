"""What is answered stands in the audit, whatever the disk, the pipe or the folder do."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from function.problems import Problem, RetryLaterError
from function.trust.audit.chained import AuditRules, ChainedAudit
from function.trust.audit.line import AuditFile
from function.trust.audit.log import NoAudit
from function.trust.audit.sinks.folder import FolderSink
from function.trust.audit.sinks.stdout import StdoutSink

from .chains import KEY, auditing, lines, report, swap, written


class Gate:
    """A `LineSink` that takes lines when it is let; what it holds is a real disk that hangs."""

    def __init__(self):
        self.may, self.lines, self.syncs = threading.Event(), [], 0

    def open(self, chain):
        return []

    def append(self, line, seq):
        self.may.wait(20)
        self.lines.append(line)

    def sync(self):
        self.syncs += 1

    def tick(self):
        pass

    def close(self):
        pass


@contextmanager
def files_of_at_most(size):
    """No file of this process grows beyond that: a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_many_writers_at_once_keep_the_order_in_which_they_came(tmp_path):
    async with auditing(FolderSink(tmp_path, fsync=False)) as audit:
        await asyncio.gather(*(audit.write(swap(str(n))) for n in range(1000)))
    requests = [int(facts["request"]) for facts in lines(tmp_path) if "request" in facts]
    assert requests == list(range(1000))
    assert report(tmp_path).faults == ()


async def test_what_waits_together_reaches_the_disk_together():
    gate = Gate()
    async with auditing(gate) as audit:
        writing = [asyncio.create_task(audit.write(swap(str(n)))) for n in range(100)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in writing)
        gate.may.set()
        await asyncio.gather(*writing)
        assert len(gate.lines) == 101
        assert gate.syncs <= 3


async def test_a_caller_that_is_gone_has_its_line_nevertheless():
    gate = Gate()
    async with auditing(gate) as audit:
        writing = asyncio.create_task(audit.write(swap("gone")))
        await asyncio.sleep(0)
        writing.cancel()
        gate.may.set()
        await audit.write(swap("next"))
    assert [b'"gone"' in line or b'"next"' in line for line in gate.lines] == [
        False,
        True,
        True,
        False,
    ]


async def test_a_line_that_takes_too_long_counts_as_not_written():
    gate = Gate()
    audit = ChainedAudit(gate, AuditRules(KEY), patience_s=0.01)
    await audit.start()
    with pytest.raises(RetryLaterError) as raised:
        await audit.write(swap())
    assert raised.value.code == "audit_unavailable"
    gate.may.set()
    await audit.close(1.0)


async def test_a_full_disk_refuses_and_goes_on_when_there_is_room(tmp_path):
    failed, kept = [], []
    async with auditing(FolderSink(tmp_path, fsync=True)) as audit:
        audit.on_failed.append(failed.append)
        audit.on_written.append(kept.append)
        await audit.write(swap("a"))
        size = (tmp_path / f"{audit.chain}.jsonl").stat().st_size
        with files_of_at_most(size + 10):
            for _ in range(3):
                with pytest.raises(Problem) as raised:
                    await audit.write(swap("b"))
                assert raised.value.code == "audit_unavailable"
                assert raised.value.headers["Retry-After"] == "2"
        await audit.write(swap("c"))
    assert (failed, kept) == (["swap"] * 3, ["swap"] * 2)
    assert [facts.get("request") for facts in lines(tmp_path)] == [None, "a", "c", None]
    found = report(tmp_path)
    assert (found.faults, found.notes) == ((), ())


async def test_where_the_operator_wants_that_swaps_go_on_and_their_number_is_kept(tmp_path):
    async with auditing(FolderSink(tmp_path, fsync=False), fail_open=True) as audit:
        await audit.write(swap("a"))
        with files_of_at_most((tmp_path / f"{audit.chain}.jsonl").stat().st_size):
            for _ in range(3):
                await audit.write(swap("b"))
        await audit.write(swap("c"))
    kinds = [(facts["kind"], facts.get("count")) for facts in lines(tmp_path)]
    assert kinds == [
        ("start", None), ("swap", None), ("missed", 3), ("swap", None), ("stop", None)
    ]  # fmt: skip
    found = report(tmp_path)
    assert found.faults == ()
    assert "3 records before it could not be written" in str(found.notes[0])


async def test_a_disk_that_is_full_at_the_start_is_no_end(tmp_path):
    audit = ChainedAudit(FolderSink(tmp_path, fsync=False), AuditRules(KEY))
    with files_of_at_most(100):
        await audit.start()
        with pytest.raises(RetryLaterError):
            await audit.write(swap("a"))
    await audit.write(swap("b"))
    await audit.close(1.0)
    assert [facts["kind"] for facts in lines(tmp_path)] == ["start", "swap", "stop"]
    assert report(tmp_path).faults == ()


async def test_a_folder_that_is_gone_or_is_none_refuses(tmp_path):
    folder = tmp_path / "audit"
    folder.write_text("a file")
    async with auditing(FolderSink(folder, fsync=False)) as audit:
        with pytest.raises(RetryLaterError):
            await audit.write(swap("a"))
        folder.unlink()
        await audit.write(swap("b"))
        shutil.rmtree(folder)
        with pytest.raises(RetryLaterError):
            await audit.write(swap("c"))
        folder.mkdir()
        await audit.write(swap("d"))
    assert "the lines before line 2 are missing" in str(report(folder).faults[0])


async def test_a_file_that_somebody_removes_is_missed_and_written_anew(tmp_path):
    async with auditing(FolderSink(tmp_path, fsync=False)) as audit:
        await audit.write(swap("a"))
        (tmp_path / f"{audit.chain}.jsonl").unlink()
        await audit.write(swap("b"))
    assert [facts.get("request") for facts in lines(tmp_path)] == ["b", None]
    assert "the lines before line 2 are missing" in str(report(tmp_path).faults[0])


async def test_a_start_names_the_chains_that_it_sees(tmp_path):
    first = await written(tmp_path, ["a"])
    os.utime(first, ns=(1, 1))
    second = await written(tmp_path, ["b"])
    with second.open("ab") as file:
        file.write(b'{"half a li')
    third = await written(tmp_path, ["c"])
    start = json.loads(third.read_text().splitlines()[0])
    by_chain = {facts["chain"]: facts for facts in lines(tmp_path) if facts.get("kind") == "stop"}
    assert start["seen"] == [
        {"chain": path.stem, "seq": 2, "mac": by_chain[path.stem]["mac"][:16]}
        for path in (second, first)
    ]


async def test_files_are_for_their_owner_alone(tmp_path):
    path = await written(tmp_path / "new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_names_stand_there_only_where_that_is_wanted(tmp_path):
    async with auditing(FolderSink(tmp_path, fsync=False), names=True) as audit:
        await audit.write(swap("a"))
        await audit.write(swap("b", subject=None))
    assert [facts.get("caller") for facts in lines(tmp_path)] == [None, "ann", None, None]


async def test_two_processes_share_a_pipe_without_mixing_lines():
    """As replicas of one pod might; each line is one write."""
    read, write = os.pipe()
    got = []

    def drain():
        with os.fdopen(read, "rb") as pipe:
            got.extend(pipe.readlines())

    reader = threading.Thread(target=drain)
    reader.start()
    audits = [ChainedAudit(StdoutSink(write), AuditRules(KEY)) for _ in range(2)]
    for audit in audits:
        await audit.start()
    await asyncio.gather(*(audits[n % 2].write(swap(str(n))) for n in range(400)))
    for audit in audits:
        await audit.close(1.0)
    os.close(write)
    reader.join()
    found = report([AuditFile("", "pipe", got, pure=True)])
    assert (found.chains, found.lines, found.faults, found.notes) == (2, 404, (), ())


async def test_a_pipe_that_nobody_reads_refuses_and_then_goes_on():
    read, write = os.pipe()
    os.set_blocking(write, False)
    while True:
        try:
            os.write(write, b"x" * 4096)
        except BlockingIOError:
            break
    audit = ChainedAudit(StdoutSink(write), AuditRules(KEY), patience_s=0.05)
    await audit.start()
    with pytest.raises(RetryLaterError):
        await audit.write(swap("a"))
    reader = os.fdopen(read, "rb")
    lines = []
    thread = threading.Thread(target=lambda: lines.extend(reader.readlines()))
    thread.start()
    audit._patience_s = 5.0
    await audit.write(swap("b"))
    await audit.close(1.0)
    os.close(write)
    thread.join()
    reader.close()
    found = report([AuditFile("", "pipe", lines, pure=False)])
    assert found.faults == ()


async def test_standard_output_on_a_full_disk_refuses():
    with Path("/dev/full").open("wb", buffering=0) as full:  # noqa: ASYNC230
        async with auditing(StdoutSink(full.fileno())) as audit:
            with pytest.raises(RetryLaterError):
                await audit.write(swap())


async def test_what_is_not_audited_costs_nothing():
    audit = NoAudit()
    await audit.start()
    await audit.write(swap())
    assert audit.digest(b"photo") == ""
    await audit.close(1.0)
