"""A small HTTP server that misbehaves as told: one behaviour for each path.

A behaviour is a function of the request; it answers through `Request` or on the bare socket.
"""

from __future__ import annotations

import hashlib
import re
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Request(BaseHTTPRequestHandler):
    """One request, and ways to answer it."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self):
        site = self.server.site
        with site.lock:
            site.requests.append((self.path, self.headers.get("Range"), self.headers))
        try:
            site.behaviours[self.path.partition("?")[0]](self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_):
        pass

    @property
    def probe(self) -> bool:
        """Whether only the first byte is asked for, to learn about the file."""
        return self.headers.get("Range") == "bytes=0-0"

    @property
    def wanted(self) -> tuple[int, int] | None:
        """The range that is asked for, as start and stop."""
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        return (int(match[1]), int(match[2]) + 1) if match else None

    def head(self, status, length, **headers):
        """Send the status line and the headers."""
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def answer(
        self, content, *, etag='"one"', ranges=True, chunk=65536, pause=0.0, cut=None, rudely=True
    ):
        """Answer as a good server does, except that it may be slow, or be cut.

        Args:
            content: the whole file.
            etag: its tag; None for none.
            ranges: whether ranges are answered.
            chunk: bytes that are sent at once.
            pause: seconds between them.
            cut: end the connection after so many bytes of this answer.
            rudely: end it with a reset, which may also lose bytes that were sent before.
        """
        headers = {"ETag": etag} if etag else {}
        start, stop, status = 0, len(content), 200
        if ranges and self.wanted and self.headers.get("If-Range", etag) == etag:
            start, stop = self.wanted[0], min(self.wanted[1], len(content))
            status = 206
            headers["Content_Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
        self.head(status, stop - start, **headers)
        sent = 0
        while start < stop:
            size = min(chunk, stop - start, *([cut - sent] if cut is not None else []))
            if not size:
                self.close_connection = True
                if rudely:
                    self.reset()
                return
            self.wfile.write(content[start : start + size])
            with self.server.site.lock:
                self.server.site.sent += size
            start, sent = start + size, sent + size
            if pause:
                time.sleep(pause)

    def reset(self):
        """End the connection with a TCP reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def finish(self):
        with suppress(OSError, ValueError):
            super().finish()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    site: Site

    def handle_error(self, *_):
        pass


@dataclass
class Site:
    """What the server serves, and what has been asked of it.

    Attributes:
        url: without a slash at the end.
        behaviours: by path.
        requests: path, range and headers of all requests.
        sent: bytes of content that `Request.answer` has sent.
    """

    url: str
    behaviours: dict[str, Callable[[Request], None]] = field(default_factory=dict)
    requests: list = field(default_factory=list)
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, content: bytes, behaviour: Callable[[Request], None] | None = None) -> str:
        """Serve content under the path of its digest; its URI."""
        path = f"/{hashlib.sha256(content).hexdigest()[:16]}"
        self.behaviours[path] = behaviour or (lambda request: request.answer(content))
        return self.url + path

    def ranges(self) -> list[str]:
        """The ranges that were asked for, without those that only probe."""
        return [wanted for _, wanted, _ in self.requests if wanted != "bytes=0-0"]


@contextmanager
def hostile(context=None) -> Iterator[Site]:
    """Run a server; with an SSL context it speaks HTTPS."""
    server = _Server(("127.0.0.1", 0), Request)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https" if context else "http"
    server.site = Site(f"{scheme}://localhost:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
