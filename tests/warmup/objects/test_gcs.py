"""Prefetch from a real server that speaks Google Cloud Storage's API."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from tests.warmup.conftest import content_of, file_of, model_of
from tests.warmup.objects.gcs import fake_gcs
from tests.warmup.objects.hostile import hostile
from warmup.failures import DamagedError, UnavailableError
from warmup.models.prefetch import prefetch
from warmup.settings.variables import replace as changed

CONTENT = content_of(1_000_000)


@pytest.fixture(scope="module")
def bucket():
    with fake_gcs() as bucket:
        yield bucket


@pytest.fixture
def put(bucket):
    """Upload; the URI."""

    def put(content, name="folder/a b+ü.onnx", **facts):
        blob = bucket.blob(name)
        for key, value in facts.items():
            setattr(blob, key, value)
        blob.upload_from_string(content)
        return f"gs://models/{name}"

    return put


@pytest.fixture
def patient(settings):
    return changed(settings, fetch_stall_s=10)


def fetch(settings, file):
    with prefetch([model_of(file)], settings) as ready:
        return ready.models[0].path.read_bytes()


@pytest.mark.parametrize("size", [1, 64 * 1024, 1_000_000])
def test_an_object_arrives_whole(put, patient, size):
    content = CONTENT[:size]
    assert fetch(patient, file_of(content, put(content))) == content


def test_names_may_be_escaped_in_the_uri(put, patient):
    put(CONTENT, "folder/with space.onnx")
    file = file_of(CONTENT, "gs://models/folder/with%20space.onnx")
    assert fetch(patient, file) == CONTENT


def test_an_object_that_says_it_is_compressed_comes_as_it_is_stored(put, patient):
    uri = put(CONTENT, "a.gz", content_encoding="gzip")
    assert fetch(patient, file_of(CONTENT, uri)) == CONTENT


def test_an_object_that_is_not_there_is_unavailable(bucket, patient):
    with pytest.raises(UnavailableError, match="detect: gs://models/gone: HTTP 404"):
        fetch(patient, file_of(CONTENT, "gs://models/gone"))


def test_a_bucket_that_is_not_there_is_unavailable(bucket, patient):
    with pytest.raises(UnavailableError, match="HTTP 404"):
        fetch(patient, file_of(CONTENT, "gs://nobody/gone"))


def test_another_object_is_damaged(put, patient):
    with pytest.raises(DamagedError, match="expected 1000000 bytes, got 9; it is an HTML page"):
        fetch(patient, file_of(CONTENT, put(b"<html>no\n")))
    with pytest.raises(DamagedError, match="gs://models/a: expected sha256"):
        fetch(patient, file_of(CONTENT, put(CONTENT[:-1] + b"x", "a")))


def test_an_object_that_is_replaced_on_the_way_begins_anew(put, patient, monkeypatch):
    old = content_of(len(CONTENT), seed=1)
    uri = put(old, "a")
    from warmup.objects.http import HttpSource

    reads = []
    real = HttpSource.read

    async def read(self, facts, sink):
        reads.append(sink.at)
        if len(reads) == 4:
            put(CONTENT, "a")
        await real(self, facts, sink)

    monkeypatch.setattr(HttpSource, "read", read)
    assert fetch(changed(patient, fetch_connections=1), file_of(CONTENT, uri)) == CONTENT
    assert reads.count(0) == 2


@pytest.fixture
def through(bucket, monkeypatch):
    """Between us and the real server: a relay that does to its answers what it is told."""
    import urllib.request

    upstream = os.environ["STORAGE_EMULATOR_HOST"]
    with hostile() as site:
        plans = []

        def relay(request):
            asked = urllib.request.Request(upstream + request.path)
            for name in ("Range", "If-Range", "Accept-Encoding"):
                if request.headers.get(name):
                    asked.add_header(name, request.headers[name])
            with urllib.request.urlopen(asked) as answer:
                body = answer.read().replace(upstream.encode(), site.url.encode())
                plan = plans.pop() if plans and "/download/" in request.path else None
                if plan:
                    plan(request, body)
                    return
                kept = {"Content-Type", "Content-Range", "ETag"}
                headers = {k: v for k, v in answer.headers.items() if k in kept}
                request.head(answer.status, len(body), **headers)
                request.wfile.write(body)

        class All(dict):
            def __getitem__(self, _):
                return relay

        site.behaviours = All()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", site.url)
        site.plans = plans
        yield site


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_refusal_is_tried_again(put, through, patient, status):
    uri = put(CONTENT)
    through.plans += [lambda request, _: request.head(status, 0)] * 2
    assert fetch(patient, file_of(CONTENT, uri)) == CONTENT
    assert not through.plans


def test_a_stalled_download_is_not_waited_for(put, through, settings):
    uri = put(CONTENT)
    hang = threading.Event()

    def stall(request, body):
        request.head(206, len(body), Content_Range="bytes 0-65535/1000000")
        request.wfile.write(body[:1000])
        hang.wait(30)

    through.plans += [stall, lambda request, _: request.reset()]
    try:
        assert fetch(changed(settings, fetch_stall_s=1), file_of(CONTENT, uri)) == CONTENT
    finally:
        hang.set()


def test_without_the_library_it_says_what_to_install(tmp_path):
    (tmp_path / "models.toml").write_text(
        '[[model]]\nrole="a"\nfamily="b"\nuri="gs://c/d"\nsize=1\nlicence="MIT"\n'
        f'sha256="{"0" * 64}"\n'
    )
    code = (
        "import sys, runpy; sys.modules['google.auth'] = None; sys.argv = ['warmup', 'prefetch'];"
        "runpy.run_module('warmup', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ
        | {"EMBER_MANIFEST": str(tmp_path / "models.toml"), "EMBER_STORE": str(tmp_path / "s")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 69
    assert "make install EXTRAS=gcs" in done.stderr
