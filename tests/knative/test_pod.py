"""The containers of the dev overlay, run by podman with what the manifests declare."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.function.raw import eventually
from tests.image.podman import SLOW
from tests.knative.manifests import rendered
from tests.knative.pod import podman_words

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.image.podman import Podman
    from tests.knative.manifests import Manifests

PYTHON = "/usr/bin/python3.11"


def test_nothing_that_is_declared_is_passed_over(tmp_path):
    dev = rendered("overlays/dev")
    for change in (
        lambda m: m.main.update(tty=True),
        lambda m: m.main["securityContext"].update(procMount="Default"),
        lambda m: m.main["resources"]["limits"].update({"nvidia.com/gpu": "1"}),
    ):
        broken = dev.changed(change)
        with pytest.raises(ValueError, match="nothing here knows"):
            podman_words(broken, broken.revision, broken.main, {"store": tmp_path})


@dataclass
class Pod:
    """One pod: its main container runs, and the others can be run beside it.

    Attributes:
        podman: runs podman.
        manifests: what is declared.
        images: what stands for the images that the manifests name.
        store: the folder that stands for the volume.
        name: of the main container, whose network the others share.
    """

    podman: Podman
    manifests: Manifests
    images: dict[str, str]
    store: Path
    name: str

    def words(self, pod: dict[str, Any], container: dict[str, Any], *extra: str) -> list[str]:
        here = {**container, "image": self.images[container["image"]]}
        return [*extra, *podman_words(self.manifests, pod, here, {"store": self.store})]

    def prefetch(self) -> subprocess.CompletedProcess[str]:
        (container,) = self.manifests.revision["initContainers"]
        return self.podman("run", "--rm", "--network=none", *self.words(self.revision, container))

    @property
    def revision(self) -> dict[str, Any]:
        return self.manifests.revision

    def start(self) -> None:
        words = self.words(self.revision, self.manifests.main)
        self.podman("run", "--detach", f"--name={self.name}", "--network=none", *words)

    def ping(self, address: str | None = None) -> subprocess.CompletedProcess[str]:
        """The keepalive's container. Its address is replaced, as there is no front door here."""
        ((_, pod),) = [one for one in self.manifests.pods if one[0].startswith("CronJob/")]
        (container,) = pod["containers"]
        (door,) = [word for word in container["args"] if word.startswith("http://")]
        port = self.manifests.main["ports"][0]["containerPort"]
        args = ["ping", f"http://127.0.0.1:{port}{address}"]
        if address is None:
            here = f"http://127.0.0.1:{port}"
            args = [here if word == door else word for word in container["args"]]
        words = self.words(pod, {**container, "args": args})
        network = f"--network=container:{self.name}"
        return self.podman("run", "--rm", network, *words, fine=False)

    def run_inside(self, code: str) -> str:
        return self.podman("exec", self.name, PYTHON, "-c", code).stdout

    def stop(self) -> tuple[int, float]:
        """The exit code after SIGTERM, and the seconds that it took."""
        began = time.monotonic()
        self.podman("kill", "--signal=TERM", self.name)
        code = int(self.podman("wait", self.name).stdout)
        return code, time.monotonic() - began


@pytest.fixture(scope="module")
def pod(podman, cpu, keepalive, tmp_path_factory):
    """A pod as declared; its store is a folder that everyone may write to, as an emptyDir is."""
    store = tmp_path_factory.mktemp("store")
    store.chmod(0o777)
    images = {"dev.local/ember:cpu": cpu, "dev.local/ember:keepalive": keepalive}
    name = f"ember-pod-{secrets.token_hex(4)}"
    pod = Pod(podman, rendered("overlays/dev"), images, store, name)
    pod.prefetch()
    pod.start()
    try:
        yield pod
    finally:
        podman("rm", "--force", "--time=0", name)


class TestPod:
    """In order: it starts, works and ends."""

    pytestmark = SLOW

    def test_it_becomes_ready_where_the_probe_asks(self, pod):
        main = pod.manifests.main
        ready = main["readinessProbe"]["httpGet"]["path"]
        eventually(lambda: pod.ping(ready).returncode == 0, 60)

    def test_it_is_confined_as_declared(self, pod):
        told = pod.run_inside("print(open('/proc/1/status').read())")
        status = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
        assert status["Uid"].split() == ["65532"] * 4
        assert status["Gid"].split() == ["65532"] * 4
        assert {status[f"Cap{which}"] for which in ("Eff", "Prm", "Bnd")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")

    def test_it_can_write_to_the_store_and_nowhere_else(self, pod):
        code = """
import os
for folder in ("/", "/tmp", "/home/nonroot", "/opt/ember", os.environ["EMBER_STORE"]):
    try:
        open(os.path.join(folder, "x"), "w").close()
        print(folder)
    except OSError:
        pass
"""
        assert pod.run_inside(code).split() == ["/store"]
        assert len(list((pod.store / "optimised").glob("[!.]*"))) == 4

    def test_it_has_the_declared_memory_and_threads(self, pod):
        (facts,) = json.loads(pod.podman("container", "inspect", pod.name).stdout)
        assert facts["HostConfig"]["Memory"] == 2**30
        assert facts["HostConfig"]["NanoCpus"] == 2_000_000_000

    def test_the_keepalive_finds_it_well(self, pod):
        done = pod.ping()
        told = json.loads(done.stdout)
        assert (done.returncode, told["outcome"]) == (0, "well"), done.stdout
        assert told["swapped"]["after"] < told["swapped"]["before"]

    def test_it_prefetches_again_in_the_same_store_while_it_runs(self, pod):
        assert "are here and proven" in pod.prefetch().stderr

    def test_told_to_stop_it_ends_within_what_is_left_of_the_pods_time(self, pod):
        code, took_s = pod.stop()
        assert code == 0
        settings = pod.manifests.environment(pod.manifests.main)
        assert took_s >= float(settings["EMBER_DRAIN_GRACE_S"])
        assert took_s < pod.revision["timeoutSeconds"] - 30
