"""What the serving process imports, and when: nothing heavy keeps the port from answering."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from function.runtime import imports
from warmup.timeline import Timeline

HEAVY = {"numpy", "cv2", "PIL", "onnxruntime"}
NEVER = {
    "click", "rich", "google", "matplotlib", "kubernetes", "lightkube", "insightface", "redis",
    "jwt", "tensorrt", "pycuda", "pandas", "scipy", "pydantic", "requests", "av",
}  # fmt: skip

AT_THE_FIRST_ANSWER = """
import json, sys
from function.process import server

async def report():
    await waits()
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), flush=True)
    sys.exit()

waits, server._answer_early_probes = server._answer_early_probes, report
from function.process.start import run
run()
"""

AFTER_A_SWAP = """
import asyncio, json, os, sys
import function.process.server, function.process.start, function.process.wiring.server
from function import settings
from function.process.wiring.service import build_service

async def main():
    service = build_service(settings.load(os.environ))
    await service.load()
    await service.warm()
    service.close()

asyncio.run(main())
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""

WHO_IMPORTS_WHAT = """
import asyncio, json, sys, threading
from function.runtime import imports
from warmup.timeline import Timeline

found, real = [], imports.import_module
names = {module: part for part, module in imports.PARTS.items()}

def noted(module):
    found.append((names[module], threading.get_ident()))
    return real(module)

async def main():
    imports.import_module = noted
    parts = imports.Imports(Timeline())
    parts.begin("runtime", "http", "work")
    await asyncio.gather(*map(parts.have, ("work", "http", "runtime")))
    parts.close()

asyncio.run(main())
print(json.dumps(found))
"""

CERTIFICATES = """
import asyncio, json, ssl
from function.runtime.imports import Imports
from warmup.timeline import Timeline

made, real = [], ssl.create_default_context

def noted(*args, **kwargs):
    made.append(real(*args, **kwargs))
    return made[-1]

async def main():
    ssl.create_default_context = noted
    parts = Imports(Timeline())
    await parts.have("http")
    parts.close()

asyncio.run(main())
print(json.dumps([each.cert_store_stats()["x509_ca"] for each in made]))
"""


def imported(code):
    """What a process of its own prints, e.g. the top-level packages that it has imported."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nothing_heavy_is_imported_before_the_port_answers(monkeypatch):
    monkeypatch.setenv("EMBER_PORT", "0")
    found = set(imported(AT_THE_FIRST_ANSWER))
    assert "asyncio" in found
    assert not found & (HEAVY | NEVER | {"aiohttp", "prometheus_client"})


def test_the_runtime_comes_first_and_all_is_imported_by_one_thread():
    found = imported(WHO_IMPORTS_WHAT)
    assert [part for part, _ in found] == ["runtime", "http", "work"]
    assert len({thread for _, thread in found}) == 1


def test_a_part_that_could_not_be_imported_is_tried_again(monkeypatch):
    monkeypatch.setitem(imports.PARTS, "work", "no_such_module")

    async def both():
        part = imports.Imports(Timeline())
        with pytest.raises(ModuleNotFoundError):
            await part.have("work")
        monkeypatch.setitem(imports.PARTS, "work", "json")
        await part.have("work")
        part.close()

    asyncio.run(both())


def test_no_certificate_is_read_for_a_server():
    assert set(imported(CERTIFICATES)) == {0}


def test_other_threads_keep_their_certificates():
    with ThreadPoolExecutor(1) as other, imports.without_certificates():
        mine = ssl.create_default_context()
        theirs = other.submit(ssl.create_default_context).result()
    after = ssl.create_default_context()
    counts = [each.cert_store_stats()["x509_ca"] for each in (mine, theirs, after)]
    assert counts[0] == 0
    assert counts[1] == counts[2] > 0


def test_serving_imports_none_of_the_extras():
    found = set(imported(AFTER_A_SWAP))
    assert found >= HEAVY
    assert not found & NEVER
