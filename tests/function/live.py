"""A real server on a free port, on an event loop and a thread of its own, and a plain client."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

import uvloop
from aiohttp import web, web_app
from PIL import Image

from function import settings
from function.http.connection import Runner
from function.process.wiring.server import build_server
from function.process.wiring.service import build_service
from function.service.health import Health
from function.service.service import sample
from warmup.replica import Replica
from warmup.settings.variables import replace as changed

BOUNDARY = "a-boundary"
DEFAULTS = changed(settings.load({}), threads=2)


class Live:
    """The server, as a context manager.

    Args:
        warm: whether to wait until it is ready.
        loop_factory: uvloop as in `serve`, or asyncio's own.
        fetch: as of `build_server`.
        changes: to `DEFAULTS`.
    """

    def __init__(self, *, warm=True, loop_factory=uvloop.new_event_loop, fetch=None, **changes):
        self.settings = changed(DEFAULTS, **changes)
        self._warm, self._fetch = warm, fetch
        self._loop_factory = loop_factory
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._started.result(60)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def run(self, coroutine):
        """Run a coroutine on the server's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def send(self, method, path, body=None, headers=None) -> Answer:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **headers) -> Answer:
        return self.send("GET", path, headers=headers)

    def form(self, path, *parts, **headers) -> Answer:
        """Post a multipart body."""
        return self.send("POST", path, multipart(*parts), FORM | dashed(headers))

    def json(self, path, value, **headers) -> Answer:
        """Post JSON; bytes are sent as they are."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.send("POST", path, body, JSON | dashed(headers))

    def _run(self):
        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            runner.run(self._serve())

    async def _serve(self):
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.service = build_service(self.settings)
        self.replica = Replica(self.service)
        health = Health(self.replica, self.service, self.settings.replica.stuck_s)
        self.server = build_server(self.settings, health, self._fetch)
        runner = Runner(
            self.server.app,
            self.server.edge,
            shutdown_timeout=5.0,
            answer_timeout=self.settings.requests.answer_timeout_s,
        )
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = runner.addresses[0][1]
            if self._warm:
                await self.replica.warm()
            self._started.set_result(None)
        except BaseException as error:
            self._started.set_exception(error)
            raise
        await self._stop.wait()
        await runner.cleanup()
        self.service.close()
        # It remembers a thousand handlers, and through them the models of as many servers.
        web_app._cached_build_middleware.cache_clear()


@dataclass(frozen=True)
class Answer:
    """An answer; `problem` checks that it is one and gives its members."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes = field(repr=False)

    @property
    def media_type(self):
        return self.headers.get_content_type()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def image(self):
        return Image.open(io.BytesIO(self.body))

    def problem(self, code, status=None):
        assert self.media_type == "application/problem+json", self.body
        members = self.json
        assert members["code"] == code, members
        assert members["status"] == self.status == (status or self.status), members
        return members


@dataclass(frozen=True)
class Part:
    """One part of a multipart body; a str is text, bytes are a file."""

    name: str
    value: str | bytes
    file_name: str | None = "photo.jpg"
    media_type: str | None = "image/jpeg"

    def encode(self):
        head = f'Content-Disposition: form-data; name="{self.name}"'
        if isinstance(self.value, bytes):
            head += "" if self.file_name is None else f'; filename="{self.file_name}"'
            head += "" if self.media_type is None else f"\r\nContent-Type: {self.media_type}"
        data = self.value if isinstance(self.value, bytes) else self.value.encode()
        return head.encode() + b"\r\n\r\n" + data + b"\r\n"


def multipart(*parts):
    """A multipart body; a part may be a tuple."""
    encoded = [(part if isinstance(part, Part) else Part(*part)).encode() for part in parts]
    mark = b"--" + BOUNDARY.encode()
    return b"".join(mark + b"\r\n" + each for each in encoded) + mark + b"--\r\n"


def dashed(headers):
    return {name.replace("_", "-"): value for name, value in headers.items()}


def png(width, height, colour=(90, 120, 150)):
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG")
    return out.getvalue()


FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
JSON = {"Content-Type": "application/json"}
HOPPER, COLLINS = sample("hopper"), sample("collins")
SOURCE, TARGET = ("source", HOPPER), ("target", COLLINS)
NOBODY = png(64, 64)
