"""What the serving process imports, and when: nothing heavy keeps the port from answering."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"numpy", "cv2", "PIL", "onnxruntime"}
NEVER = {
    "click", "rich", "google", "matplotlib", "kubernetes", "lightkube", "insightface", "redis",
    "jwt", "tensorrt", "pycuda", "pandas", "scipy", "pydantic", "requests",
}  # fmt: skip

AT_THE_FIRST_ANSWER = """
import json, sys
from function.http import server

async def report():
    await waits()
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), flush=True)
    sys.exit()

waits, server._answer_who_waits = server._answer_who_waits, report
from function.startup import run
run()
"""

AFTER_A_SWAP = """
import asyncio, json, os, sys
import function.http.app, function.http.server, function.startup
from function import assemble, settings

async def main():
    service = assemble.service(settings.load(os.environ))
    await service.load()
    await service.warm()
    service.close()

asyncio.run(main())
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported(code):
    """The top-level packages that a process of its own has imported when it prints them."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_nothing_heavy_is_imported_before_the_port_answers(monkeypatch):
    monkeypatch.setenv("EMBER_PORT", "0")
    found = imported(AT_THE_FIRST_ANSWER)
    assert "aiohttp" in found
    assert not found & (HEAVY | NEVER)


def test_serving_imports_none_of_the_extras():
    found = imported(AFTER_A_SWAP)
    assert found >= HEAVY
    assert not found & NEVER
