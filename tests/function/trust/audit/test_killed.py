"""Replicas that are killed under load: what was answered stands in the audit, and it is whole."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from function.trust.audit import keyring
from function.trust.audit.line import AuditFile, read
from tests.soak import tried
from tests.warmup.objects.gcs import fake_gcs

from .chains import files, report

REPLICAS = 2


@contextmanager
def replica(place, keys, spool=""):
    """A process that answers; it is killed at the end, if that was not done before."""
    command = [sys.executable, "-m", "tests.function.trust.audit.replica", place, str(keys), spool]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def answered(process, count):
    """Read so many answers, kill it, and read what else it had answered."""
    found = [process.stderr.readline() for _ in range(count)]
    process.kill()
    found += process.stderr.read().splitlines(keepends=True)
    return {line.decode().strip() for line in found if line.endswith(b"\n")}


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text(keyring.new())
    return path


def check(found, keys, requests, chains):
    """Every answer has its line, and nothing is wrong."""
    result = report(found, keyring.read(keys))
    assert [str(fault) for fault in result.faults] == []
    assert result.chains == chains
    written = [
        line.facts["request"] for each in found for line in read(each) if "request" in line.facts
    ]
    assert requests <= set(written)
    assert len(written) == len(set(written))


@pytest.mark.timeout(900)
def test_what_was_answered_stands_in_the_folder_that_replicas_share(tmp_path, keys):
    folder, rng, requests = tmp_path / "audit", random.Random(1), set()
    kills = tried(4, 100)
    for _ in range(kills // REPLICAS):
        with replica(folder.as_uri(), keys) as one, replica(folder.as_uri(), keys) as two:
            for process in (one, two):
                requests |= answered(process, rng.randrange(1, 400))
    check(files(folder), keys, requests, kills)
    print(f"{kills} kills, {len(requests)} answers")


@pytest.mark.timeout(900)
def test_what_was_answered_comes_into_the_bucket_in_the_end(tmp_path, keys):
    """Windows that killed processes left are brought by those that come after them."""
    spool, rng, requests = tmp_path / "spool", random.Random(2), set()
    kills = tried(2, 20)
    with fake_gcs("audit") as bucket:
        place = "gs://audit/ember"
        for _ in range(kills // REPLICAS):
            with replica(place, keys, str(spool)) as one, replica(place, keys, str(spool)) as two:
                for process in (one, two):
                    requests |= answered(process, rng.randrange(1, 400))
        with replica(place, keys, str(spool)) as last:
            last.stderr.readline()
            last.stdin.close()  # it ends in order
            while last.stderr.readline():
                pass
            assert last.wait() == 0
        blobs = bucket.client.list_blobs("audit")
        found = [
            AuditFile("", blob.name, blob.download_as_bytes().splitlines(keepends=True), pure=True)
            for blob in blobs
        ]
    check(found, keys, requests, kills + 1)
    assert list(spool.iterdir()) == []


@pytest.mark.timeout(900)
def test_what_was_answered_stands_in_what_was_collected_of_standard_output(keys):
    rng, requests, found = random.Random(3), set(), []
    kills = tried(4, 100)
    for number in range(kills):
        with replica("stdout", keys) as process, ThreadPoolExecutor(1) as collector:
            collected = collector.submit(process.stdout.readlines)
            requests |= answered(process, rng.randrange(1, 400))
            found.append(AuditFile("", f"log-{number}", collected.result(), pure=False))
    check(found, keys, requests, kills)
