"""A real Redis that tests start, pause, kill and start again."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time


class RedisServer:
    """One `redis-server` on a port of this machine, as a context manager.

    Args:
        program: its path.
        port: where it listens.
        options: further words of its command line.
        tls: whether the port speaks TLS.
    """

    def __init__(self, program, port, *options, tls=False):
        listen = ["--port", "0", "--tls-port", str(port)] if tls else ["--port", str(port)]
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._command = [program, *listen, "--bind", "127.0.0.1", "--save", "", *options]
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.resume()
        self.kill()

    def start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            assert self.process.poll() is None
            time.sleep(0.01)
        raise AssertionError("redis-server does not listen")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
