"""A store that a DaemonSet fills and pods only read: bytes come once to a node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.function.raw import eventually
from tests.warmup.conftest import content_of, file_of, model_of
from warmup.models import lock
from warmup.models.prefetch import prefetch
from warmup.models.store import Store
from warmup.settings.settings import StoreSettings
from warmup.settings.variables import replace as changed

CONTENT = content_of(1_000_000)


@pytest.fixture
def node(tmp_path):
    """The folder of the node, which the DaemonSet may write to."""
    return Store(tmp_path / "node")


@pytest.fixture
def pod(tmp_path, node, settings):
    """The settings of a pod by its name: with a store of its own beside that of the node."""

    def named(name):
        return changed(settings, store=tmp_path / name, shared_store=node.root)

    return named


@pytest.fixture
def daemon(node, settings):
    """The settings of the DaemonSet, which has the shared store's variable as well, for nothing."""
    return changed(settings, store=node.root, shared_store=node.root.parent / "not there")


def paths(settings, file, **options):
    with prefetch([model_of(file)], settings, **options) as ready:
        return [model.path for model in ready.models]


def everything(store):
    """Each file of a store and when it changed."""
    return {path: path.lstat().st_mtime_ns for path in store.root.rglob("*")}


def own(settings):
    """The bytes of whole and partial files that a pod has of its own."""
    folders = (settings.store / "sha256", settings.store / "partial")
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*"))


def test_two_pods_of_a_node_use_what_came_once(site, node, pod, daemon):
    file = file_of(CONTENT, site.put(CONTENT))
    paths(daemon, file)
    before, sent = everything(node), site.sent
    for name in ("one", "two"):
        assert paths(pod(name), file) == [node.path(file.sha256)]
        assert own(pod(name)) == 0
    assert site.sent == sent, "a pod fetched what the node has"
    assert everything(node) == before, "a pod has written to the folder of the node"


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "a file where a folder should be"])
def test_without_it_a_pod_fetches_for_itself(site, node, pod, there):
    if there == "an empty folder":
        node.root.mkdir()
    elif there != "nothing":
        node.root.write_bytes(b"")
    file = file_of(CONTENT, site.put(CONTENT))
    (path,) = paths(pod("one"), file)
    assert path.parents[1] == pod("one").store
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("size", [len(CONTENT), 10, 0])
def test_what_is_damaged_there_comes_into_the_own_store_and_is_mended_by_the_daemon(
    site, node, pod, daemon, size
):
    file = file_of(CONTENT, site.put(CONTENT))
    (shared,) = paths(daemon, file)
    shared.chmod(0o644)
    shared.write_bytes(bytes(size))
    before = everything(node)
    (path,) = paths(pod("one"), file)
    assert path.parents[1] == pod("one").store
    assert path.read_bytes() == CONTENT
    assert everything(node) == before
    assert paths(daemon, file) == [shared]
    assert shared.read_bytes() == CONTENT
    assert paths(pod("two"), file) == [shared]


def test_a_file_is_mended_while_a_pod_uses_it_and_the_pod_keeps_what_it_had(
    site, node, pod, daemon
):
    file = file_of(CONTENT, site.put(CONTENT))
    paths(daemon, file)
    with prefetch([model_of(file)], pod("one")) as ready:
        (held,) = ready.held
        shared = node.path(file.sha256)
        shared.chmod(0o644)
        os.utime(shared, ns=(0, 0))
        shared.write_bytes(bytes(10))
        paths(daemon, file)
        assert shared.read_bytes() == CONTENT
        assert os.fstat(held.fd).st_ino != shared.stat().st_ino


def test_a_pod_waits_for_what_the_daemon_is_fetching(site, node, pod, daemon):
    asked, go_on = threading.Event(), threading.Event()

    def behave(request):
        asked.set()
        go_on.wait(60)
        request.answer(CONTENT)

    file = file_of(CONTENT, site.put(CONTENT, behave))
    patient = {"fetch_stall_s": 60.0}
    states = []
    with ThreadPoolExecutor(2) as pool:
        filling = pool.submit(paths, changed(daemon, **patient), file)
        assert asked.wait(60)
        told = threading.Event()

        def report(progress):
            states.append(progress.state.name)
            if progress.state.name == "WAITING":
                told.set()

        waiting = pool.submit(paths, changed(pod("one"), **patient), file, report=report)
        assert told.wait(60), states
        go_on.set()
        assert waiting.result() == filling.result() == [node.path(file.sha256)]
    assert own(pod("one")) == 0
    assert site.sent <= len(CONTENT) + 1  # the probe


def test_when_the_daemon_dies_the_pod_goes_on_by_itself(site, node, pod):
    file = file_of(CONTENT, site.put(CONTENT))
    node.create()
    told = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with lock.attempt(node.lock(file.sha256)) as ours:
            assert ours
            waiting = pool.submit(
                paths,
                pod("one"),
                file,
                report=lambda one: one.state.name == "WAITING" and told.set(),
            )
            assert told.wait(60)
        (path,) = waiting.result()
    assert path.parents[1] == pod("one").store


def test_a_file_that_lies_in_its_own_place_is_not_looked_for(tmp_path, node, pod):
    place = tmp_path / "model.onnx"
    place.write_bytes(CONTENT)
    file = file_of(CONTENT, place.as_uri(), path=place)
    assert paths(pod("one"), file) == [place]


def test_offline_what_the_node_has_is_enough(site, pod, daemon):
    file = file_of(CONTENT, site.put(CONTENT))
    paths(daemon, file)
    assert paths(changed(pod("one"), offline=True), file)


@pytest.fixture
def manifest(tmp_path):
    def write(file):
        path = tmp_path / "models.toml"
        path.write_text(
            f'[[model]]\nrole = "m"\nfamily = "f"\nuri = "{file.uri}"\nsize = {file.size}\n'
            f'sha256 = "{file.sha256}"\nlicence = "MIT"\n'
        )
        return str(path)

    return write


def start(*words, **environ):
    return subprocess.Popen(
        [sys.executable, "-c", "from function.command import main; main()", *words],
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class TestProcesses:
    """As the pods do it: processes of their own over one folder."""

    def test_bytes_come_once_for_two_pods_and_what_gets_lost_is_mended(
        self, site, node, manifest, tmp_path
    ):
        file = file_of(CONTENT, site.put(CONTENT))
        common = {"EMBER_MANIFEST": manifest(file), "EMBER_SHARED_STORE": str(node.root)}
        filling = start("prefetch", "--every=1", **{**common, "EMBER_STORE": str(node.root)})
        try:
            eventually(node.path(file.sha256).exists, 60)
            sent = site.sent
            for name in ("one", "two"):
                pod = start("prefetch", **{**common, "EMBER_STORE": str(tmp_path / name)})
                out, _ = pod.communicate(timeout=120)
                assert pod.returncode == 0, out
                assert "1 files are here and proven" in out
                assert own(StoreSettings(store=tmp_path / name)) == 0
            assert site.sent == sent < 2 * len(CONTENT)
            node.path(file.sha256).unlink()
            eventually(node.path(file.sha256).exists, 60)
            filling.send_signal(signal.SIGTERM)
            out, _ = filling.communicate(timeout=120)
            assert filling.returncode == 0, out
        finally:
            filling.kill()
            filling.communicate()

    def test_a_source_that_is_away_is_asked_again(self, site, node, manifest):
        away = threading.Event()

        def behave(request):
            request.answer(CONTENT) if away.is_set() else request.head(404, 0)

        file = file_of(CONTENT, site.put(CONTENT, behave))
        environ = {"EMBER_MANIFEST": manifest(file), "EMBER_STORE": str(node.root)}
        filling = start("prefetch", "--every=1", **environ)
        try:
            eventually(lambda: site.requests, 60)
            away.set()
            eventually(node.path(file.sha256).exists, 60)
            assert filling.poll() is None
        finally:
            filling.kill()
            filling.communicate()

    @pytest.mark.parametrize(("word", "told"), [("verify", "ok "), ("ls", "shared")])
    def test_what_is_shared_is_told(self, site, daemon, node, manifest, tmp_path, word, told):
        file = file_of(CONTENT, site.put(CONTENT))
        paths(daemon, file)
        environ = {"EMBER_MANIFEST": manifest(file), "EMBER_SHARED_STORE": str(node.root)}
        done = start("models", word, EMBER_STORE=str(tmp_path / "own"), **environ)
        out, _ = done.communicate(timeout=120)
        assert (done.returncode, told in out) == (0, True), out
