"""The replica that is attacked, and what is watched meanwhile.

It runs as the base Service has it: with its memory limit, keys, quotas, events, and a Redis that
holds little. A probe asks `/healthz` ten times a second, as a platform would, and the kernel says
how much memory the process has held at most.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import yaml
from PIL import Image

from function.admission.keys import new
from tests.function.admission.redis_server import RedisServer
from tests.function.images.make import save
from tests.function.live import FORM, multipart
from tests.running import Server, running, unused_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).parents[2]
PHOTOS = ROOT / "tests/photos"
REDIS_LIMIT = "96mb"
TOKENS = 50
TIERS = {"stranger": "free", "burst": "paid", "rich": "vip", "user": "vip", "operator": "operator"}
_RULES = """
[sources]
ann = "data:,"
[[rule]]
bucket = "uploads"
source = "ann"
output = "gs://swapped/{stem}.jpg"
"""


@dataclass(frozen=True)
class Answer:
    """What came back; status 0 is a connection that was closed without an answer."""

    status: int
    headers: http.client.HTTPMessage | None = None
    body: bytes = b""

    @property
    def code(self) -> str:
        """The code of the problem, if it is one."""
        try:
            return str(json.loads(self.body)["code"])
        except (ValueError, KeyError, TypeError):
            return ""

    @property
    def honest(self) -> bool:
        """Whether it is no failure: below 500, or a 503 that says why and when to come back."""
        if self.status < 500:
            return True
        after = self.headers and self.headers.get("Retry-After")
        return self.status == 503 and bool(after) and bool(self.code)


class Probe:
    """Asks `/healthz` again and again; a context manager.

    In a process of its own, as hundreds of attacking threads would keep it waiting in this one.

    Attributes:
        slowest_s: how long the slowest answer took.
        wrong: how many were not 200.
    """

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self.slowest_s, self.wrong = 0.0, 0

    def __enter__(self) -> Probe:
        words = [sys.executable, "-m", "tests.attack.probe", str(self._port)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "asking\n"
        return self

    def __exit__(self, *_: object) -> None:
        told, _unused = self._process.communicate(timeout=90)
        slowest, wrong = told.split()
        self.slowest_s, self.wrong = float(slowest), int(wrong)


@dataclass
class Victim:
    """A replica that is ready.

    Attributes:
        server: the process and its address.
        keys: a key for each name of `TIERS`.
        limit: bytes of memory that its container would have.
        redis: the Redis that it shares with replicas that are not there.
    """

    server: Server
    keys: dict[str, str]
    limit: int
    redis: RedisServer
    source: bytes = field(default_factory=lambda: small("grace_hopper.jpg"))
    target: bytes = field(default_factory=lambda: small("astronaut.png"))

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        by: str | None = "rich",
        **headers: str,
    ) -> Answer:
        """Send one request as one of `TIERS`, or as nobody."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if by:
            named.setdefault("Authorization", f"Bearer {self.keys[by]}")
        try:
            return Answer(*self.server.send(method, path, body, named))
        except (OSError, http.client.HTTPException):
            return Answer(0)

    def form(self, method: str, path: str, *parts: tuple[str, str | bytes], by: str) -> Answer:
        """Send a form."""
        return self.call(method, path, multipart(*parts), by=by, **FORM)

    def json(self, path: str, body: bytes, *, by: str | None = "rich") -> Answer:
        """Post JSON."""
        return self.call("POST", path, body, by=by, Content_Type="application/json")

    def swap(self, *, by: str, source: bytes | None = None, target: bytes | None = None) -> Answer:
        """Ask for a swap."""
        parts = ("source", source or self.source), ("target", target or self.target)
        return self.form("POST", "/v1/swap", *parts, by=by)

    def tokens(self, by: str) -> int:
        """What a caller has left."""
        return int(json.loads(self.call("GET", "/v1/quota", by=by).body)["tokens"])

    def peak(self) -> int:
        """The most bytes of memory that the process has held since `forget`."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    def forget(self) -> None:
        """Begin to look for the most memory anew."""
        Path(f"/proc/{self.server.process.pid}/clear_refs").write_text("5")


def small(name: str, side: int = 256) -> bytes:
    """A sample photo that costs one token."""
    with Image.open(PHOTOS / name) as image:
        return save(image.convert("RGB").resize((side, side)), "JPEG")


def many(work: Callable[[int], Answer], count: int, at_once: int) -> list[Answer]:
    """The answers to so many requests, so many at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, range(count)))


def together(works: Iterable[Callable[[], Answer]], at_once: int = 4) -> list[Answer]:
    """The answers to requests that differ."""
    with ThreadPoolExecutor(at_once) as pool:
        return [each.result() for each in [pool.submit(work) for work in works]]


@contextmanager
def victim() -> Iterator[Victim]:
    """Start everything, and end it."""
    program = shutil.which("redis-server")
    if not program:
        raise SystemExit(
            "attack: redis-server is not installed: `make services` says how to get it"
        )
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        options = (
            "--dir",
            str(folder),
            "--maxmemory",
            REDIS_LIMIT,
            "--maxmemory-policy",
            "noeviction",
        )
        redis = stack.enter_context(RedisServer(program, unused_port(), *options))
        made = {name: new(name, tier) for name, tier in TIERS.items()}
        (folder / "keys").write_text("".join(f"{line}\n" for _, line in made.values()))
        (folder / "events.toml").write_text(_RULES)
        settings = {
            "EMBER_AUTH": "keys",
            "EMBER_KEYS": str(folder / "keys"),
            "EMBER_EVENTS": str(folder / "events.toml"),
            "EMBER_REDIS_URL": redis.url,
            "EMBER_QUOTA_FAIL": "closed",
            "EMBER_URI_NETWORKS": "127.0.0.0/8",
            "EMBER_MEMORY_SOFT_LIMIT": str(int(0.95 * limit())),
            "EMBER_STORE": str(folder / "store"),
        }
        server = stack.enter_context(running(**settings))
        yield Victim(server, {name: key for name, (key, _) in made.items()}, limit(), redis)


def limit() -> int:
    """The memory that the base Service gives a replica, in bytes."""
    service = yaml.safe_load((ROOT / "knative/base/service.yaml").read_text())
    text = service["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert text.endswith("Gi"), text
    return int(float(text.removesuffix("Gi")) * 2**30)
