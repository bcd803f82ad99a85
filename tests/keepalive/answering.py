"""Tiny servers that give the answers that a test needs."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def answering(status, body, wait=None, headers=None, tls=None):
    """A tiny server that always gives one answer, after `wait` is set."""
    with serving(lambda _: (status, body), wait, headers, tls) as server:
        yield server


@contextmanager
def serving(answer, wait=None, headers=None, tls=None, *, bodies=False):
    """A tiny server that asks `answer(path)` for status and body, after `wait` is set.

    With `bodies` it asks `answer(path, body)`.

    It keeps what it was asked, in `asked` (paths) and `heads` (headers).
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            self.server.heads.append(dict(self.headers))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if wait:
                wait.wait(10)
            status, body = answer(self.path, body) if bodies else answer(self.path)
            with suppress(ConnectionError):  # who asked has given up
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.heads = [], []
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            server.handle_error = lambda *_: None  # who asked does not trust it
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            if wait:
                wait.set()
            server.shutdown()
            thread.join()


READY = b'{"ready": true, "phase": "ready", "waiting_for": null}'
LOADING = b'{"ready": false, "phase": "loading", "waiting_for": "2 models"}'
