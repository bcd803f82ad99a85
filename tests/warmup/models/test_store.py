"""The store: shared, proven, never wrong, never larger than allowed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.warmup.conftest import content_of, file_of, model_of
from warmup.failures import DamagedError, StoppedError, StoreError, UnavailableError
from warmup.models import lock
from warmup.models.prefetch import prefetch
from warmup.settings.variables import replace as changed

CONTENTS = [content_of(200_000, seed) for seed in range(4)]


@pytest.fixture
def files(site):
    return [file_of(content, site.put(content), f"m{n}") for n, content in enumerate(CONTENTS)]


@pytest.fixture
def bring(settings):
    """Prefetch files, and let go of them; what is given further changes the settings."""

    def bring(*files, **changes):
        models = [model_of(file) for file in files]
        prefetch(models, changed(settings, **changes)).close()

    return bring


def whole(store):
    return {path.name for path in (store.root / "sha256").iterdir()}


class TestProof:
    def test_a_file_that_was_proven_is_not_read_again(self, bring, files, store, monkeypatch):
        bring(*files)

        def fail(*_):
            raise AssertionError("hashed again")

        monkeypatch.setattr("hashlib.file_digest", fail)
        bring(*files)

    def test_a_file_in_its_own_place_is_read_once_although_there_was_no_store(
        self, bring, files, tmp_path, monkeypatch
    ):
        own = tmp_path / "own"
        own.write_bytes(CONTENTS[0])
        file = replace(files[0], path=own)
        bring(file, store=tmp_path / "new")
        monkeypatch.setattr("hashlib.file_digest", None)
        bring(file, store=tmp_path / "new")

    @pytest.mark.parametrize("change", ["grow", "touch", "copy", "no marker", "bad marker"])
    def test_a_file_that_may_have_changed_is_hashed_again(
        self, bring, files, store, monkeypatch, change
    ):
        bring(files[0])
        path, marker = store.path(files[0].sha256), store.root / "verified" / files[0].sha256
        match change:
            case "grow":
                path.chmod(0o644)
                path.write_bytes(CONTENTS[0] + b"x")
            case "touch":
                os.utime(path)
            case "copy":
                other = path.with_name("other")
                other.write_bytes(CONTENTS[0])
                os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
                other.rename(path)
            case "no marker":
                marker.unlink()
            case "bad marker":
                marker.write_text("{")
        verified = []
        real = type(files[0]).verify
        monkeypatch.setattr(
            type(files[0]), "verify", lambda *args: verified.append(args) or real(*args)
        )
        bring(files[0])
        assert verified
        assert path.read_bytes() == CONTENTS[0]
        verified.clear()
        bring(files[0])
        assert not verified

    @pytest.mark.parametrize("damage", [b"", CONTENTS[0][:-1], CONTENTS[0][:-1] + b"x"])
    def test_a_damaged_file_is_fetched_anew(self, bring, files, store, damage):
        bring(files[0])
        path = store.path(files[0].sha256)
        path.chmod(0o644)
        path.write_bytes(damage)
        bring(files[0])
        assert path.read_bytes() == CONTENTS[0]

    def test_a_damaged_file_that_another_process_uses_is_replaced_beside_it(
        self, bring, files, store
    ):
        bring(files[0])
        path = store.path(files[0].sha256)
        with path.open("rb") as used:
            lock.share(used.fileno())
            path.chmod(0o644)
            path.write_bytes(b"damaged")
            bring(files[0])
            assert used.read() == b"damaged"
        assert path.read_bytes() == CONTENTS[0]

    def test_offline_a_damaged_file_is_an_error_that_names_it(self, bring, files, store):
        bring(files[0])
        path = store.path(files[0].sha256)
        path.chmod(0o644)
        path.write_bytes(b"damaged")
        with pytest.raises(UnavailableError, match=r"EMBER_OFFLINE is set.*m0"):
            bring(files[0], offline=True)


class TestOffline:
    def test_what_is_there_is_enough(self, bring, files):
        bring(*files)
        bring(*files, offline=True)

    def test_everything_that_is_missing_is_named(self, bring, files):
        bring(files[0])
        with pytest.raises(UnavailableError, match=r"m1 \(http.*m2 \(http"):
            bring(*files[:3], offline=True)

    def test_local_sources_are_not_the_network(self, bring, tmp_path, store):
        (tmp_path / "a").write_bytes(CONTENTS[0])
        file = file_of(CONTENTS[0], (tmp_path / "a").as_uri())
        bring(file, offline=True)
        assert whole(store) == {file.sha256}

    def test_no_socket_of_the_network_is_opened(self, files, bring, store, tmp_path):
        bring(files[0])
        (tmp_path / "a").write_bytes(CONTENTS[3])
        lines = [
            f'[[model]]\nrole = "{role}"\nfamily = "f"\nuri = "{file.uri}"\nsize = {file.size}\n'
            f'sha256 = "{file.sha256}"\nlicence = "MIT"\n'
            for role, file in {
                "stored": files[0],
                "local": file_of(CONTENTS[3], (tmp_path / "a").as_uri()),
                "missing": files[1],
                "cloud": replace(files[2], uri="gs://bucket/name"),
            }.items()
        ]
        watch = (
            "import sys, runpy\n"
            "def hook(event, args):\n"
            "    if event == 'socket.__new__' and args[1] != 1 or event in"
            " {'socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'socket.gethostbyname'}:\n"
            "        print('NETWORK', event, args, flush=True)\n"
            "sys.addaudithook(hook)\n"
            "sys.argv = ['warmup', 'prefetch']\n"
            "runpy.run_module('warmup', run_name='__main__')\n"
        )

        def run(count, offline):
            manifest = tmp_path / "models.toml"
            manifest.write_text("".join(lines[:count]))
            return subprocess.run(
                [sys.executable, "-c", watch],
                env=os.environ
                | {"EMBER_MANIFEST": str(manifest), "EMBER_STORE": str(store.root)}
                | {"EMBER_OFFLINE": offline},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        fine, missing = run(2, "true"), run(4, "true")
        assert fine.returncode == 0, fine.stderr
        assert missing.returncode == 69
        assert "missing" in missing.stderr
        assert "NETWORK" not in fine.stdout + missing.stdout
        assert "NETWORK" in run(3, "false").stdout  # the watch does see it


class TestUse:
    def test_what_is_held_is_in_use_until_it_is_let_go(self, settings, files, store):
        ready = prefetch([model_of(files[0])], settings)
        assert [entry.in_use for entry in store.entries()] == [True]
        ready.close()
        assert [entry.in_use for entry in store.entries()] == [False]

    def test_what_is_in_use_is_not_removed(self, settings, files, store):
        with prefetch([model_of(files[0])], settings):
            assert not store.remove(files[0].sha256)
            assert whole(store) == {files[0].sha256}
        assert store.remove(files[0].sha256)
        assert whole(store) == set()

    def test_a_file_that_is_evicted_while_it_is_opened_counts_as_missing(
        self, bring, files, store, monkeypatch
    ):
        bring(files[0])

        def evicted_first(fd):
            store.path(files[0].sha256).unlink()
            fcntl.flock(fd, fcntl.LOCK_SH)

        monkeypatch.setattr("warmup.models.lock.share", evicted_first)
        assert store.find(files[0]) is None


class TestQuota:
    ROOM = 3 * 200_000 + 3 * 4096  # three files, on disks that count in blocks

    def test_the_least_recently_used_makes_room(self, bring, files, store):
        for number, file in enumerate(files[:3]):
            bring(file, store_quota=self.ROOM)
            os.utime(store.root / "verified" / file.sha256, (number, number))
            os.utime(store.path(file.sha256), (number, number))
        store.prove(files[0], store.path(files[0].sha256).stat())
        bring(files[0], store_quota=self.ROOM)  # used again
        bring(files[3], store_quota=self.ROOM)
        assert whole(store) == {files[0].sha256, files[2].sha256, files[3].sha256}

    def test_what_is_in_use_never_does(self, settings, files, store):
        settings = changed(settings, store_quota=self.ROOM)
        with prefetch([model_of(file) for file in files[:3]], settings):
            with pytest.raises(StoreError, match=r"m3: .*EMBER_STORE_QUOTA"):
                prefetch([model_of(files[3])], settings)
            assert whole(store) == {file.sha256 for file in files[:3]}
        prefetch([model_of(files[3])], settings).close()
        assert files[3].sha256 in whole(store)

    def test_a_set_that_cannot_fit_is_refused_before_anything_is_asked(self, bring, files, site):
        with pytest.raises(StoreError, match="m0, m1, m2, m3"):
            bring(*files, store_quota=self.ROOM)
        assert not site.requests

    def test_a_set_never_evicts_itself(self, bring, files, store):
        bring(*files[:3], store_quota=self.ROOM)
        assert len(whole(store)) == 3

    def test_what_was_left_behind_partial_makes_room(self, bring, files, store):
        store.create()
        abandoned = store.partial("0" * 64).with_suffix(".data")
        abandoned.write_bytes(bytes(400_000))
        os.utime(abandoned, (1, 1))
        bring(*files[:3], store_quota=self.ROOM)
        assert not abandoned.exists()

    def test_a_damaged_file_makes_room_for_itself(self, bring, files, store):
        bring(*files[:3], store_quota=self.ROOM)
        path = store.path(files[0].sha256)
        path.chmod(0o644)
        path.write_bytes(CONTENTS[1])
        bring(*files[:3], store_quota=self.ROOM)
        assert path.read_bytes() == CONTENTS[0]


class TestTwoProcesses:
    def test_they_transfer_once_and_the_second_sees_the_progress(self, site, settings, store):
        content = content_of(500_000, seed=9)
        uri = site.put(content, lambda request: request.answer(content, chunk=8000, pause=0.05))
        settings = changed(settings, fetch_stall_s=5, fetch_connections=2)
        models = [model_of(file_of(content, uri))]
        told, paths = [], []

        def one(report):
            with prefetch(models, settings, report=report) as ready:
                paths.append(ready.models[0].path.read_bytes())

        threads = [
            threading.Thread(target=one, args=(lambda way: told.append(way.facts()),))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert paths == [content] * 3
        assert site.sent == len(content) + 1
        waiting = [facts["done"] for facts in told if facts["state"] == "waiting"]
        assert waiting
        assert max(waiting) > 0

    def test_when_the_first_fails_the_second_goes_on(self, site, settings, store):
        content = content_of(500_000, seed=9)
        first = threading.Event()

        def behave(request):
            if not request.probe:
                first.set()
            request.answer(content, chunk=8000, pause=0.02)

        settings = changed(settings, fetch_stall_s=5, fetch_connections=1)
        models = [model_of(file_of(content, site.put(content, behave)))]
        stop = threading.Event()

        def fail():
            with pytest.raises(StoppedError):
                prefetch(models, settings, stop=stop)

        failing = threading.Thread(target=fail)
        failing.start()
        first.wait(10)
        threading.Timer(0.3, stop.set).start()
        with prefetch(models, settings) as ready:
            assert ready.models[0].path.read_bytes() == content
        failing.join()
        assert site.sent < 1.7 * len(content)


@pytest.fixture
def as_nobody(tmp_path):
    """Run Python as a user who may read but not write what the test makes."""

    def run(code):
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == os.getuid() and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o555)
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


class TestReadOnly:
    CODE = """
from pathlib import Path
from warmup.models.prefetch import prefetch
from warmup.settings.settings import StoreSettings
from warmup.models.file import File
from warmup.models.manifest import Model
from warmup.settings.variables import replace as changed
import os
if os.getuid() == 0:  # after the imports: the interpreter itself may be root's alone
    os.setgid(65534)
    os.setuid(65534)
files = {files}
models = [Model(f[0], "some", File(*f), "MIT") for f in files]
try:
    with prefetch(models, StoreSettings(store=Path({store!r}))) as ready:
        print("ready", len(ready.held))
except Exception as error:
    print(type(error).__name__, error)
"""

    @pytest.fixture
    def read_only(self, store, as_nobody):
        def run(*files):
            for folder, _, names in os.walk(store.root):
                Path(folder).chmod(0o555)
                for name in names:
                    (Path(folder) / name).chmod(0o444)
            facts = [(file.name, file.uri, file.size, file.sha256) for file in files]
            done = as_nobody(self.CODE.format(files=facts, store=str(store.root)))
            assert done.returncode == 0, done.stderr
            return done.stdout

        return run

    @pytest.mark.parametrize("proven", [True, False])
    def test_what_is_there_is_used(self, bring, files, store, read_only, proven):
        bring(*files)
        if not proven:
            for marker in (store.root / "verified").iterdir():
                marker.unlink()
        assert read_only(*files) == "ready 4\n"

    def test_what_cannot_be_done_is_said(self, bring, files, read_only):
        bring(files[0])
        said = read_only(*files[:2])
        assert said.startswith("StoreError the store")
        assert "is read-only" in said
        assert "missing are: m1" in said

    def test_a_store_that_cannot_be_made_is_said(self, tmp_path, files, as_nobody):
        facts = [(file.name, file.uri, file.size, file.sha256) for file in files[:1]]
        code = self.CODE.format(files=facts, store=str(tmp_path / "no" / "store"))
        assert "StoreError the store" in as_nobody(code).stdout


def test_a_store_that_is_a_file_is_said(tmp_path, files, settings):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        prefetch([model_of(files[0])], changed(settings, store=tmp_path / "file" / "store"))


def test_verification_without_trust_finds_what_a_marker_hides(bring, files, store):
    bring(files[0])
    path = store.path(files[0].sha256)
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(CONTENTS[1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    held = store.find(files[0])
    assert held is not None
    held.close()
    with pytest.raises(DamagedError):
        store.find(files[0], trust=False)
