"""A server of which the context on the GPU is killed while it serves.

`python -m tests.gpu.killed FOLDER WORLD` is such a server: as soon as there is a file `kill` in the
folder, a kernel that traps ends the context, as a fault of a library would.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from function.exits import Exit
from function.runtime.gpu.cuda_errors import CudaError
from tests.function.live import FORM, SOURCE, TARGET, multipart
from tests.running import Server, _listening, _ready, _until

TRAP = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry die() { trap; ret; }
"""
"""PTX: a kernel that ends with an error that nothing in the process survives."""


def proof(world) -> dict:
    """Kill one server, and start another."""
    folder, environ = world.folder, world.environ()
    with _serving(folder, world, environ) as server:
        before = _swap(server)
        (folder / "kill").touch()
        _until((folder / "dead").exists, server.process, server.log)
        if said := (folder / "dead").read_text():
            raise RuntimeError(said)
        after = _swap(server)
        began = time.monotonic()
        code = server.process.wait(60)
        ended = time.monotonic() - began
    (folder / "kill").unlink()
    with _serving(folder, world, environ) as server:
        again = _swap(server)
        providers = sorted(set(_providers(server)))
    found = {"before": before, "after": after, "exit": code, "ended_s": round(ended, 1)}
    if (before, after, code, again) != (200, 503, Exit.UNAVAILABLE, 200):
        raise AssertionError(f"{found}, then {again}")
    return {**found, "the_next_one": again, "providers": providers}


def trap() -> None:
    """Kill the context of the first GPU, by the driver itself."""
    from function.runtime.gpu.driver import driver

    cuda, found = ctypes.CDLL("libcuda.so.1"), driver()
    module, kernel, image = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(TRAP)
    found.push(found.retain(0))
    try:
        for call, arguments in (
            (cuda.cuModuleLoadData, (ctypes.byref(module), image)),
            (cuda.cuModuleGetFunction, (ctypes.byref(kernel), module, b"die")),
            (cuda.cuLaunchKernel, (kernel, *[1] * 6, 0, None, None, None)),
        ):
            if code := call(*arguments):
                raise RuntimeError(f"{call.__name__} fails with {code}")
        if not cuda.cuCtxSynchronize():
            raise RuntimeError("the context has survived a kernel that traps")
    finally:
        with suppress(CudaError):
            found.pop()


@contextmanager
def _serving(folder, world, environ):
    log = folder / "server.log"
    (folder / "dead").unlink(missing_ok=True)
    settings = {"EMBER_PORT": "0", "EMBER_LOG_FORMAT": "json", "EMBER_DRAIN_GRACE_S": "0"}
    settings["EMBER_HEARTBEAT_S"] = "0"  # so that a request is the first to find it out
    words = (str(folder), type(world).__name__)
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.killed", *words],
            env={**os.environ, **settings, **environ},
            stderr=said,
        )
    try:
        url = _until(lambda: _listening(log), process, log)
        _until(lambda: _ready(url), process, log)
        yield Server(url, process, log)
    finally:
        process.kill()
        process.wait()


def _swap(server) -> int:
    status, *_ = server.send("POST", "/v1/swap", multipart(SOURCE, TARGET), FORM)
    return status


def _providers(server):
    _, _, body = server.send("GET", "/readyz")
    return [each["provider"] for each in json.loads(body)["models"].values()]


def main(folder: str, world: str) -> int:
    """Serve, and wait to be killed."""
    from function.process.start import run
    from tests.gpu import worlds

    kill = getattr(worlds, world).killer()

    def wait() -> None:
        while not Path(folder, "kill").exists():
            time.sleep(0.02)
        try:
            kill()
        except Exception as error:
            said = str(error)
        else:
            said = ""
        Path(folder, "said").write_text(said)
        Path(folder, "said").rename(Path(folder, "dead"))

    threading.Thread(target=wait, daemon=True).start()
    return run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
