from __future__ import annotations

import asyncio
import io
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import numpy as np
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event
from PIL import Image

from function import settings
from function.faces.select import Selection
from function.process.wiring.service import build_service
from function.requests import SwapRequest, Upload
from function.service.service import sample
from function.telemetry.timings import Timings
from tests.warmup.objects.gcs import fake_gcs

from . import forms

HOPPER, COLLINS = sample("hopper"), sample("collins")
HERE = (ip_network("127.0.0.0/8"),)
RULES = """
[sources]
hopper = "gs://photos/sources/hopper.jpg"

[[rule]]
name = "slow"
bucket = "uploads"
prefix = "slow/"
source = "{slow}"
output = "gs://swapped/{{name}}"

[[rule]]
name = "beside"
bucket = "uploads"
prefix = "beside/"
suffix = ".jpg"
sidecar = "{{dir}}{{stem}}.json"
output = "gs://swapped/{{name}}"

[[rule]]
name = "named"
bucket = "uploads"
metadata = {{ source = "*" }}
source_metadata = "source"
source_within = "gs://photos/sources/"
output = "gs://uploads/swapped/{{name}}"
prefix = "named/"

[[rule]]
name = "rest"
bucket = "uploads"
prefix = "in/"
source = "hopper"
format = "webp"
output = "gs://swapped/{{dir}}{{stem}}.webp"
"""


@dataclass
class Cloud:
    """Buckets with uploads, and what has come out of them."""

    uploads: object
    swapped: object
    photos: object

    def upload(self, name, data=COLLINS, **metadata):
        """Put a photo; the object as an event tells of it."""
        blob = self.uploads.blob(name)
        blob.metadata = metadata or None
        blob.upload_from_string(data, content_type="image/jpeg")
        blob.reload()
        return forms.resource(
            "uploads", name, blob.generation, **({"metadata": metadata} if metadata else {})
        )

    def output(self, name, bucket=None):
        """The output of that name, or None."""
        return (bucket or self.swapped).get_blob(name)


@pytest.fixture(scope="session")
def cloud():
    with fake_gcs("uploads") as uploads:
        client = uploads.client
        swapped, photos = client.create_bucket("swapped"), client.create_bucket("photos")
        photos.blob("sources/hopper.jpg").upload_from_string(HOPPER, "image/jpeg")
        yield Cloud(uploads, swapped, photos)


@dataclass
class Gate:
    """A server of the source photo that answers when it is let, and counts who waits."""

    open: threading.Event = field(default_factory=threading.Event)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    url: str = ""


@pytest.fixture(scope="session")
def slow():
    gate = Gate()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            gate.asked.release()
            gate.open.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", str(len(HOPPER)))
            self.end_headers()
            self.wfile.write(HOPPER)

        def log_message(self, *_):
            pass

    with serving(Handler) as url:
        gate.url = url + "/hopper.jpg"
        yield gate


@contextmanager
def serving(handler):
    """An HTTP server on a thread; its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def closed(slow):
    """The gate, closed when the test begins and open when it ends."""
    slow.open.clear()
    while slow.asked.acquire(blocking=False):
        pass
    yield slow
    slow.open.set()


class Sink:
    """A real place for result events."""

    def __init__(self):
        self.events, self.status = [], 202
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.status < 300:
                    message = HTTPMessage(dict(self.headers.items()), body)
                    outer.events.append(from_binary_event(message))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.handler = Handler

    def of(self, uri):
        return [each for each in self.events if each.get_subject() == uri]


@pytest.fixture(scope="module")
def sink():
    sink = Sink()
    with serving(sink.handler) as url:
        sink.url = url
        yield sink


@pytest.fixture(scope="session")
def rules(tmp_path_factory, slow):
    path = tmp_path_factory.mktemp("events") / "events.toml"
    path.write_text(RULES.format(slow=slow.url))
    return path


@pytest.fixture(scope="session")
def expected():
    """The pixels of a swap of the sample photos, as WebP and as JPEG, without a watermark."""

    async def swaps():
        service = build_service(settings.load({"EMBER_THREADS": "2", "EMBER_WATERMARK": "off"}))
        await service.load()
        found = {}
        for kind in ("webp", "jpeg"):
            sources = (Upload(HOPPER, "source"),)
            wanted = SwapRequest(sources, Upload(COLLINS, "target"), Selection(), format=kind)
            found[kind] = pixels((await service.swap(wanted, Timings())).image)
        service.close()
        return found

    return asyncio.run(swaps())


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def told(answer):
    """The event in an answer, read by the SDK."""
    assert answer.status == 200, answer.body
    return from_binary_event(HTTPMessage(dict(answer.headers), answer.body))
