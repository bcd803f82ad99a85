"""Prefetch against servers that stall, reset, lie and come back."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pytest

from tests.warmup.conftest import content_of, file_of, model_of
from warmup.failures import DamagedError, StoppedError, StoreError, UnavailableError
from warmup.models.prefetch import prefetch
from warmup.models.progress import FetchState
from warmup.settings.settings import StoreSettings
from warmup.settings.variables import build
from warmup.settings.variables import replace as changed

CONTENT = content_of(1_000_000)
KIB = 1024


def fetch(settings, *files, **options):
    """The path of each file after a prefetch."""
    with prefetch([model_of(file) for file in files], settings, **options) as ready:
        return [model.path for model in ready.models]


def once(behaviour, times=1):
    """Behave so the first times that are not a probe, then well."""
    left = [times]
    lock = threading.Lock()

    def behave(request):
        with lock:
            bad = not request.probe and left[0] > 0
            left[0] -= bad
        if bad:
            behaviour(request)
        else:
            request.answer(CONTENT)

    return behave


def resumable(store, file):
    """How many bytes a later attempt need not fetch."""
    state = json.loads(store.partial(file.sha256).with_suffix(".json").read_text())
    return state["done"]


class TestGoodServer:
    def test_a_file_arrives_whole_under_its_digest(self, site, settings, store):
        file = file_of(CONTENT, site.put(CONTENT))
        (path,) = fetch(settings, file)
        assert path == store.path(file.sha256)
        assert path.read_bytes() == CONTENT
        assert path.stat().st_mode & 0o777 == 0o444

    def test_nothing_else_is_left(self, site, settings, store):
        file = file_of(CONTENT, site.put(CONTENT))
        fetch(settings, file)
        left = {path.relative_to(store.root).as_posix() for path in store.root.rglob("*")}
        assert {name for name in left if name.startswith("partial/")} == set()
        assert f"verified/{file.sha256}" in left

    def test_a_large_file_comes_in_parts_that_cover_it_once(self, site, settings):
        fetch(settings, file_of(CONTENT, site.put(CONTENT)))
        ranges = sorted(
            tuple(map(int, wanted.removeprefix("bytes=").split("-"))) for wanted in site.ranges()
        )
        assert len(ranges) > 8
        assert [first for first, _ in ranges] == [0, *(last + 1 for _, last in ranges[:-1])]
        assert ranges[-1][1] == len(CONTENT) - 1

    def test_several_parts_come_at_once(self, site, settings):
        together = threading.Barrier(4, timeout=20)

        def behave(request):
            if not request.probe and request.wanted[0] < 4 * 64 * KIB:
                together.wait()
            request.answer(CONTENT)

        fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))

    @pytest.mark.parametrize("size", [1, 2, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1])
    def test_every_size_arrives(self, site, settings, size):
        content = content_of(size, seed=size)
        (path,) = fetch(settings, file_of(content, site.put(content)))
        assert path.read_bytes() == content

    def test_a_file_that_is_named_twice_is_fetched_once(self, site, settings):
        uri = site.put(CONTENT)
        paths = fetch(settings, file_of(CONTENT, uri), file_of(CONTENT, uri, "identity"))
        assert paths[0] == paths[1]
        assert site.sent == len(CONTENT) + 1  # the probe

    def test_the_second_time_nothing_is_asked(self, site, settings):
        file = file_of(CONTENT, site.put(CONTENT))
        fetch(settings, file)
        asked = len(site.requests)
        fetch(settings, file)
        assert len(site.requests) == asked

    def test_redirects_are_followed(self, site, settings):
        uri = site.put(CONTENT)
        site.behaviours["/there"] = lambda request: request.head(302, 0, Location=uri)
        site.behaviours["/here"] = lambda request: request.head(307, 0, Location="/there")
        (path,) = fetch(settings, file_of(CONTENT, f"{site.url}/here"))
        assert path.read_bytes() == CONTENT

    def test_a_redirect_in_a_circle_is_refused(self, site, settings):
        site.behaviours["/a"] = lambda request: request.head(302, 0, Location="/a")
        with pytest.raises(UnavailableError, match="TooManyRedirects"):
            fetch(settings, file_of(CONTENT, f"{site.url}/a"))

    def test_without_ranges_it_comes_as_a_whole(self, site, settings):
        uri = site.put(CONTENT, lambda request: request.answer(CONTENT, ranges=False))
        (path,) = fetch(settings, file_of(CONTENT, uri))
        assert path.read_bytes() == CONTENT

    def test_without_a_length_it_comes_until_it_ends(self, site, settings):
        def chunked(request):
            request.head(200, None, Transfer_Encoding="chunked")
            for at in range(0, len(CONTENT), 50_000):
                request.wfile.write(b"c350\r\n" + CONTENT[at : at + 50_000] + b"\r\n")
            request.wfile.write(b"0\r\n\r\n")

        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, chunked)))
        assert path.read_bytes() == CONTENT

    def test_compression_is_not_asked_for(self, site, settings):
        fetch(settings, file_of(CONTENT, site.put(CONTENT)))
        assert {headers["Accept-Encoding"] for *_, headers in site.requests} == {"identity"}


class TestBrokenConnections:
    @pytest.mark.parametrize("cut", [0, 1, 1000, 4096, 64 * KIB - 1])
    def test_a_reset_at_any_place_of_a_part_is_survived(self, site, settings, cut):
        behave = once(lambda request: request.answer(CONTENT, cut=cut), times=3)
        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    def test_a_part_goes_on_where_it_was_cut(self, site, settings):
        behave = once(lambda request: request.answer(CONTENT, cut=40_000, chunk=40_000))
        fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert site.sent <= len(CONTENT) + 40_000 + 1

    @pytest.mark.parametrize("cut", [0, 1, 500_000, 999_999])
    def test_a_whole_file_that_is_cut_begins_anew(self, site, settings, cut):
        left = [2]

        def behave(request):
            left[0] -= not request.probe
            bad = not request.probe and left[0] >= 0
            request.answer(CONTENT, ranges=False, cut=cut if bad else None)

        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    def test_a_server_that_stops_in_the_middle_is_not_waited_for(self, site, settings):
        hang = threading.Event()

        def stall(request):
            request.head(206, 1, Content_Range="bytes 0-0/1", ETag='"one"')
            hang.wait(30)

        def stall_later(request):
            start, stop = request.wanted
            content_range = f"bytes {start}-{stop - 1}/{len(CONTENT)}"
            request.head(206, stop - start, Content_Range=content_range, ETag='"one"')
            request.wfile.write(CONTENT[start : start + 1000])
            hang.wait(30)

        try:
            behave = once(stall_later, times=2)
            (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
            assert path.read_bytes() == CONTENT
        finally:
            hang.set()

    def test_a_server_that_never_answers_is_given_up(self, site, settings):
        hang = threading.Event()
        try:
            file = file_of(CONTENT, site.put(CONTENT, lambda _: hang.wait(30)))
            with pytest.raises(UnavailableError, match="3 times in a row"):
                fetch(settings, file)
        finally:
            hang.set()

    def test_a_drip_is_dropped_and_said_to_be_one(self, site, settings):
        def drip(request):
            request.answer(CONTENT, chunk=10, pause=0.02)

        behave = lambda request: request.answer(CONTENT) if request.probe else drip(request)  # noqa: E731
        with pytest.raises(UnavailableError, match="EMBER_FETCH_FLOOR"):
            fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))

    def test_a_drip_now_and_then_is_survived(self, site, settings):
        behave = once(lambda request: request.answer(CONTENT, chunk=10, pause=0.02), times=2)
        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    def test_slow_but_above_the_floor_is_waited_for(self, site, store):
        settings = build(
            StoreSettings, store=store.root, fetch_stall_s=0.2, fetch_retries=0, fetch_connections=1
        )
        content = CONTENT[:100_000]
        uri = site.put(content, lambda request: request.answer(content, chunk=5000, pause=0.05))
        (path,) = fetch(settings, file_of(content, uri))
        assert path.read_bytes() == content

    def test_a_port_that_nothing_listens_on_is_unavailable(self, free_port, settings):
        file = file_of(CONTENT, f"http://127.0.0.1:{free_port}/a")
        with pytest.raises(UnavailableError, match=rf"detect: http://127.0.0.1:{free_port}/a: "):
            fetch(settings, file)

    def test_what_came_before_giving_up_is_kept_and_not_asked_for_again(
        self, site, settings, store
    ):
        def behave(request):
            if request.probe or request.wanted[0] < 500_000:
                request.answer(CONTENT)
            else:
                time.sleep(0.2)
                request.reset()

        file = file_of(CONTENT, site.put(CONTENT, behave))
        with pytest.raises(UnavailableError):
            fetch(settings, file)
        assert resumable(store, file) >= 500_000 - 64 * KIB
        site.sent = 0
        site.put(CONTENT)
        (path,) = fetch(settings, file)
        assert path.read_bytes() == CONTENT
        assert site.sent <= 500_000 + 64 * KIB + 1

    def test_every_attempt_that_brings_much_counts_as_a_new_beginning(
        self, site, settings, monkeypatch
    ):
        content = content_of(6 * 1024 * KIB)
        behave = lambda request: request.answer(  # noqa: E731
            content, cut=None if request.probe else 1024 * KIB + 1, rudely=False
        )
        monkeypatch.setattr("warmup.models.partial.PART", len(content))
        (path,) = fetch(settings, file_of(content, site.put(content, behave)))
        assert path.read_bytes() == content


class TestAnswersThatAreNotTheFile:
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
    def test_a_passing_refusal_is_tried_again(self, site, settings, status):
        behave = once(lambda request: request.head(status, 0), times=2)
        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    @pytest.mark.parametrize("status", [401, 403, 404, 410])
    def test_a_lasting_refusal_is_not(self, site, settings, store, status):
        uri = site.put(CONTENT, lambda request: request.head(status, 0))
        with pytest.raises(UnavailableError, match=f"HTTP {status}"):
            fetch(settings, file_of(CONTENT, uri))
        assert len(site.requests) == 1
        assert not list((store.root / "partial").iterdir())

    def test_retry_after_is_waited_for(self, site, settings):
        asked = []

        def behave(request):
            asked.append(time.monotonic())
            if len(asked) == 1:
                request.head(503, 0, Retry_After="1")
            else:
                request.answer(CONTENT)

        fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert asked[1] - asked[0] >= 1

    def test_a_retry_after_of_an_hour_is_not(self, site, settings):
        uri = site.put(CONTENT, lambda request: request.head(429, 0, Retry_After="3600"))
        with pytest.raises(UnavailableError, match="asks to wait 3600 s"):
            fetch(settings, file_of(CONTENT, uri))

    def test_the_secrets_of_a_uri_are_not_shown(self, site, settings):
        site.behaviours["/a"] = lambda request: request.head(403, 0)
        uri = f"{site.url.replace('://', '://me:hunter2@')}/a?X-Signature=hunter3"
        with pytest.raises(UnavailableError) as caught:
            fetch(settings, file_of(CONTENT, uri))
        assert "hunter" not in str(caught.value)
        assert f"{site.url}/a: HTTP 403" in str(caught.value)

    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            (b"<!DOCTYPE html><html>Sign in</html>", "an HTML page"),
            (b"\n  <html><body>", "an HTML page"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "a Git LFS pointer"),
            (b"", "it is empty"),
            (b'{"error": "no"}', "a JSON document"),
            (b"<?xml version='1.0'?><Error>", "an XML document"),
        ],
    )
    @pytest.mark.parametrize("ranges", [True, False])
    def test_a_page_in_place_of_the_file_is_named_as_such(
        self, site, settings, store, sent, said, ranges
    ):
        def behave(request):
            if not sent and ranges:
                request.head(416, 0, Content_Range="bytes */0")
            else:
                request.answer(sent, ranges=ranges)

        file = file_of(CONTENT, site.put(CONTENT, behave))
        with pytest.raises(DamagedError, match=said) as caught:
            fetch(settings, file)
        assert f"expected 1000000 bytes, got {len(sent)}" in str(caught.value)
        assert file.uri in str(caught.value)
        assert not store.path(file.sha256).exists()
        assert not list((store.root / "partial").iterdir())

    def test_a_page_of_the_right_length_is_named_as_such(self, site, settings, store):
        page = b"<html>".ljust(len(CONTENT))
        file = file_of(CONTENT, site.put(CONTENT, lambda request: request.answer(page)))
        with pytest.raises(DamagedError, match=f"expected sha256 {file.sha256}.*an HTML page"):
            fetch(settings, file)

    @pytest.mark.parametrize("place", [0, 64 * KIB, 999_999])
    def test_a_corrupted_byte_is_found_and_nothing_of_it_kept(self, site, settings, store, place):
        bad = bytearray(CONTENT)
        bad[place] ^= 1
        file = file_of(CONTENT, site.put(CONTENT, lambda request: request.answer(bytes(bad))))
        with pytest.raises(DamagedError, match=f"{file.uri}: expected sha256"):
            fetch(settings, file)
        assert not store.path(file.sha256).exists()
        assert not list((store.root / "partial").iterdir())
        site.put(CONTENT)
        (path,) = fetch(settings, file)
        assert path.read_bytes() == CONTENT

    @pytest.mark.parametrize("size", [999_999, 1_000_001])
    def test_a_wrong_length_is_named(self, site, settings, size):
        other = content_of(size)
        uri = site.put(CONTENT, lambda request: request.answer(other))
        with pytest.raises(DamagedError, match=f"expected 1000000 bytes, got {size}"):
            fetch(settings, file_of(CONTENT, uri))

    @pytest.mark.parametrize("more", [-1000, 1000])
    def test_a_part_of_another_length_than_asked_for_does_no_harm(self, site, settings, more):
        def wrong(request):
            start, stop = request.wanted
            stop = min(len(CONTENT), stop + more)
            content_range = f"bytes {start}-{stop - 1}/{len(CONTENT)}"
            request.head(206, stop - start, Content_Range=content_range, ETag='"one"')
            request.wfile.write(CONTENT[start:stop])

        behave = once(wrong, times=5)
        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    def test_another_part_than_asked_for_is_not_taken(self, site, settings):
        def wrong(request):
            request.head(206, 10, Content_Range="bytes 7-16/1000000", ETag='"one"')
            request.wfile.write(CONTENT[7:17])

        behave = once(wrong, times=2)
        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    def test_a_server_that_forgets_its_ranges_begins_anew(self, site, settings):
        asked = []

        def behave(request):
            asked.append(request)
            request.answer(CONTENT, ranges=len(asked) < 5)

        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT


class TestAFileThatChanges:
    def test_in_the_middle_of_a_transfer_it_begins_anew(self, site, settings):
        old = content_of(len(CONTENT), seed=1)
        asked = []

        def behave(request):
            asked.append(request)
            if len(asked) < 6:
                request.answer(old, etag='"old"')
            else:
                request.answer(CONTENT, etag='"new"')

        (path,) = fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))
        assert path.read_bytes() == CONTENT

    def test_between_two_attempts_it_begins_anew(self, site, settings, store):
        old = content_of(len(CONTENT), seed=1)

        def behave(request):
            if request.probe or request.wanted[0] < 500_000:
                request.answer(old, etag='"old"')
            else:
                time.sleep(0.1)
                request.reset()

        file = file_of(CONTENT, site.put(CONTENT, behave))
        with pytest.raises(UnavailableError):
            fetch(settings, file)
        site.put(CONTENT, lambda request: request.answer(CONTENT, etag='"new"'))
        (path,) = fetch(settings, file)
        assert path.read_bytes() == CONTENT

    def test_with_every_request_it_is_given_up(self, site, settings):
        asked = []

        def behave(request):
            asked.append(request)
            request.answer(CONTENT, etag=f'"{len(asked)}"')

        with pytest.raises(UnavailableError, match="it has changed"):
            fetch(settings, file_of(CONTENT, site.put(CONTENT, behave)))

    def test_bytes_that_an_earlier_process_left_wrong_are_fetched_anew(self, site, settings, store):
        def behave(request):
            if request.probe or request.wanted[0] < 500_000:
                request.answer(CONTENT)
            else:
                time.sleep(0.1)
                request.reset()

        file = file_of(CONTENT, site.put(CONTENT, behave))
        with pytest.raises(UnavailableError):
            fetch(settings, file)
        with store.partial(file.sha256).with_suffix(".data").open("r+b") as data:
            data.write(b"lost with the power")
        site.put(CONTENT)
        (path,) = fetch(settings, file)
        assert path.read_bytes() == CONTENT


class TestStopping:
    def test_it_ends_soon_and_keeps_what_has_come(self, site, settings, store):
        stop = threading.Event()

        def behave(request):
            if not request.probe and request.wanted[0] > 500_000:
                stop.set()
                time.sleep(0.05)
            request.answer(CONTENT, chunk=1000, pause=0.01)

        file = file_of(CONTENT, site.put(CONTENT, behave))
        with pytest.raises(StoppedError):
            fetch(settings, file, stop=stop)
        assert resumable(store, file) > 0


class TestProgress:
    def test_it_is_told_from_checking_to_ready(self, site, settings):
        told = []
        uri = site.put(CONTENT, lambda request: request.answer(CONTENT, chunk=9000, pause=0.01))
        fetch(settings, file_of(CONTENT, uri), report=lambda way: told.append(way.facts()))
        assert told[0]["state"] == FetchState.CHECKING
        assert told[-1] == told[-1] | {"state": "ready", "done": 1_000_000, "eta_s": 0}
        between = [facts["done"] for facts in told if facts["state"] == "fetching"]
        assert between == sorted(between)
        assert any(0 < done < 1_000_000 for done in between)

    def test_the_store_shows_it_to_other_processes(self, site, settings, store):
        file = file_of(CONTENT, "")
        seen = []

        def behave(request):
            if not request.probe and request.wanted[0] > 800_000:
                time.sleep(0.6)
                seen.append(resumable(store, file))
            request.answer(CONTENT)

        file = file_of(CONTENT, site.put(CONTENT, behave))
        fetch(changed(settings, fetch_stall_s=5), file)
        assert max(seen) > 500_000


class TestLocalSource:
    def test_a_file_is_copied(self, tmp_path, settings, store):
        (tmp_path / "with space.onnx").write_bytes(CONTENT)
        file = file_of(CONTENT, (tmp_path / "with space.onnx").as_uri())
        (path,) = fetch(settings, file)
        assert path == store.path(file.sha256)
        assert path.read_bytes() == CONTENT

    def test_where_the_kernel_cannot_copy_it_is_read_and_written(
        self, tmp_path, settings, monkeypatch
    ):
        def fail(*_):
            raise OSError(18, "Invalid cross-device link")

        monkeypatch.setattr("os.copy_file_range", fail)
        (tmp_path / "a").write_bytes(CONTENT)
        (path,) = fetch(settings, file_of(CONTENT, (tmp_path / "a").as_uri()))
        assert path.read_bytes() == CONTENT

    def test_a_file_that_is_not_there_is_unavailable(self, tmp_path, settings):
        with pytest.raises(UnavailableError, match="No such file"):
            fetch(settings, file_of(CONTENT, (tmp_path / "a").as_uri()))

    def test_a_damaged_one_is_named(self, tmp_path, settings):
        (tmp_path / "a").write_bytes(CONTENT[:-1] + b"x")
        with pytest.raises(DamagedError, match="expected sha256"):
            fetch(settings, file_of(CONTENT, (tmp_path / "a").as_uri()))


class TestInPlace:
    def test_a_file_beside_the_manifest_is_used_where_it_is(self, tmp_path, settings, store):
        here = tmp_path / "a.onnx"
        here.write_bytes(CONTENT)
        assert fetch(settings, file_of(CONTENT, here.as_uri(), path=here)) == [here]
        assert {path.name for path in store.root.iterdir()} == {"verified"}

    @pytest.mark.parametrize("content", [None, b"", CONTENT[:-1], CONTENT[:-1] + b"x"])
    def test_a_damaged_one_is_never_fetched(self, tmp_path, settings, content):
        here = tmp_path / "a.onnx"
        if content is not None:
            here.write_bytes(content)
        with pytest.raises(DamagedError, match=r"a\.onnx"):
            fetch(settings, file_of(CONTENT, here.as_uri(), path=here))


class TestRoom:
    def test_a_disk_that_is_too_small_is_found_before_anything_is_asked(
        self, site, settings, store, monkeypatch
    ):
        usage = type(shutil.disk_usage("."))
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**6, 10**6 - 9, 9))
        with pytest.raises(StoreError, match="do not fit on the disk"):
            fetch(settings, file_of(CONTENT, site.put(CONTENT)))
        assert not site.requests

    def test_a_full_disk_leaves_nothing_behind(self, site, settings, store, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.posix_fallocate", full)
        with pytest.raises(StoreError, match=r"detect: the store .* is full \(No space left"):
            fetch(settings, file_of(CONTENT, site.put(CONTENT)))
        assert not list((store.root / "partial").iterdir())

    def test_a_disk_that_fills_up_on_the_way_leaves_nothing_behind(
        self, site, settings, store, monkeypatch
    ):
        import os

        real = os.pwrite

        def full(fd, data, at):
            if at > 300_000:
                raise OSError(28, "No space left on device")
            return real(fd, data, at)

        monkeypatch.setattr("os.pwrite", full)
        with pytest.raises(StoreError, match="is full"):
            fetch(settings, file_of(CONTENT, site.put(CONTENT)))
        assert not list((store.root / "partial").iterdir())
        assert not list((store.root / "sha256").iterdir())
