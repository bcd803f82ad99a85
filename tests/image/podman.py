"""Real images on this machine: built by `make image`, run by podman."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from keepalive.pinger.ping import Unreachable, ping
from tests.function.live import FORM, Answer, dashed, multipart
from tests.function.raw import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
STAND_INS = ROOT.parent / "shared/tools/image-build-env"
SLOW = [pytest.mark.slow, pytest.mark.timeout(600)]
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=1g")


class Unprepared(Exception):
    """Images cannot be built here; the text says why and what would help."""


@dataclass(frozen=True, slots=True)
class Container:
    """A replica in a container.

    Attributes:
        name: podman's.
        podman: runs podman.
    """

    name: str
    podman: Podman

    @property
    def port(self) -> int:
        """Where it listens."""
        url = next(event["url"] for event in self.events() if event["message"] == "listening")
        return int(url.rpartition(":")[2])

    def ready(self) -> bool:
        """Whether it takes traffic."""
        assert self.podman.alive(self.name), self.podman("logs", self.name).stderr
        try:
            return ping(f"http://127.0.0.1:{self.port}/readyz").ready
        except (StopIteration, Unreachable):
            return False

    def events(self) -> list[dict[str, Any]]:
        """What it has logged so far."""
        done = self.podman("logs", self.name)
        lines = (done.stdout + done.stderr).splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def form(self, path: str, *parts: Any, **headers: str) -> Answer:
        """Post a multipart body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, multipart(*parts), FORM | dashed(headers))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def stop(self) -> int:
        """Send SIGTERM; the exit code."""
        self.podman("kill", "--signal=TERM", self.name)
        return int(self.podman("wait", self.name).stdout)


@dataclass(frozen=True, slots=True)
class Podman:
    """Runs podman.

    Attributes:
        environ: its environment.
        bases: what `make image` is told about the bases.
    """

    environ: dict[str, str]
    bases: tuple[str, ...] = ()

    def __call__(self, *words: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a subcommand; unless `fine` is false it must succeed."""
        done = subprocess.run(
            ["podman", *words],
            env=self.environ,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        assert done.returncode == 0 or not fine, f"podman {' '.join(words)}:\n{done.stderr}"
        return done

    def build(self, target: str, *options: str, name: str = "ember-test") -> str:
        """`make image`; the name of the image.

        Args:
            target: of the Containerfile.
            options: for `podman build`.
            name: of the image, before the colon.
        """
        mounts = " ".join((self.environ.get("EMBER_BUILD_MOUNTS", ""), *options))
        done = subprocess.run(
            ["make", "image", f"TARGET={target}", f"IMAGE=localhost/{name}", *self.bases],
            cwd=ROOT,
            env=self.environ | {"EMBER_BUILD_MOUNTS": mounts},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return f"localhost/{name}:{target}"

    def alive(self, container: str) -> bool:
        """Whether a container still runs."""
        done = self("container", "inspect", "--format={{.State.Status}}", container)
        return done.stdout.strip() in {"created", "initialized", "running"}

    def inspect(self, image: str) -> dict[str, Any]:
        """What podman knows about an image."""
        return dict(json.loads(self("image", "inspect", image).stdout)[0])

    @contextmanager
    def serving(
        self, image: str, *options: str, user: str = "65532", **environ: str
    ) -> Iterator[Container]:
        """Run a replica, hardened, until it is ready; remove it in the end.

        Args:
            image: its name.
            options: for `podman run`.
            user: who it runs as.
            environ: further settings.
        """
        name = f"ember-test-{secrets.token_hex(4)}"
        own = {"EMBER_PORT": "0", "EMBER_DRAIN_GRACE_S": "0", "EMBER_ALLOW_ANONYMOUS": "true"}
        settings = own | environ
        words = [f"--env={key}={value}" for key, value in settings.items()]
        words += ["--network=host", f"--user={user}", *HARDENED, *options]
        self("run", "--detach", f"--name={name}", *words, image)
        container = Container(name, self)
        try:
            eventually(container.ready, 60)
            yield container
        except AssertionError:
            print("\n".join(map(str, container.events())))
            raise
        finally:
            self("rm", "--force", "--time=0", name)


def prepared(scratch: Path) -> Podman:
    """Podman with both bases of the images.

    A machine that reaches no registry can have a program that makes stand-ins for the bases:
    EMBER_TEST_IMAGE_ENV names it, or else it is `STAND_INS`. It is given a folder and
    prints the `export` lines under which podman then works.

    Raises:
        Unprepared: the bases cannot be had.
    """
    bases = dict(
        line.split("=", 1)
        for line in (ROOT / "image/bases.env").read_text().splitlines()
        if line[:1].isalpha()
    )
    program = Path(os.environ.get("EMBER_TEST_IMAGE_ENV") or STAND_INS)
    if program.is_file():
        script = 'set -e; made=$("$0" "$1"); eval "$made"; env -0'
        done = subprocess.run(
            ["bash", "-c", script, program, scratch], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Unprepared(f"{program} failed: {done.stderr[-500:]}")
        environ = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
        # stand-ins have the names, but not the digests
        return Podman(
            environ, tuple(f"{key}={name.partition('@')[0]}" for key, name in bases.items())
        )
    podman = Podman(dict(os.environ), tuple(f"{key}={name}" for key, name in bases.items()))
    for name in bases.values():
        if podman("image", "exists", name, fine=False).returncode:
            done = podman("pull", "--quiet", name, fine=False)
            if done.returncode:
                reason = done.stderr.strip().rpartition("\n")[2]
                raise Unprepared(f"`podman pull {name}` has to work once: {reason}")
    return podman
