"""Far more events than the queue holds: each is done in the end, and memory stays as it is."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
from collections import Counter

import aiohttp
import psutil
import pytest
from PIL import Image

from function.service.service import sample
from tests.running import running
from tests.soak import tried

from . import forms

EVENTS = tried(400, soak=5000)
"""An hour's worth is 5000."""
BROKERS, QUEUE = 256, 32
RULES = """
[[rule]]
name = "many"
bucket = "photos"
at = "{folder}/photos/"
source = "{folder}/hopper.jpg"
output = "{folder}/out/{{stem}}.jpg"
"""
FACES = {"hopper": (106, 73, 420, 387), "collins": (128, 20, 324, 216)}


def tiny(name):
    """The face of a sample photo, as small as it can be found."""
    out = io.BytesIO()
    face = Image.open(io.BytesIO(sample(name))).crop(FACES[name]).resize((112, 112))
    face.save(out, "JPEG", quality=80)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path):
    """A mounted bucket with uploads."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "hopper.jpg").write_bytes(tiny("hopper"))
    first = tmp_path / "photos" / "0.jpg"
    first.write_bytes(tiny("collins"))
    for number in range(1, EVENTS):
        os.link(first, first.with_name(f"{number}.jpg"))
    (tmp_path / "events.toml").write_text(RULES.format(folder=tmp_path.as_uri()))
    return tmp_path


class Brokers:
    """Deliver every event until it is taken, and never earlier again than they are told."""

    def __init__(self, url):
        self.url, self.left = url, list(range(EVENTS))
        self.statuses, self.waits = Counter(), []
        random.Random(1).shuffle(self.left)

    async def run(self):
        connector = aiohttp.TCPConnector(limit=BROKERS)
        patient = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=patient) as session:
            await asyncio.gather(*(self.broker(session) for _ in range(BROKERS)))

    async def broker(self, session):
        while self.left:
            headers, body = forms.minio(forms.record("photos", f"{self.left.pop()}.jpg"))
            while True:
                async with session.post(self.url, data=body, headers=headers) as answer:
                    self.statuses[answer.status] += 1
                    told = await answer.read()
                    if answer.status == 200:
                        break
                    assert answer.status == 503, told
                    assert json.loads(told)["code"] == "overloaded", told
                    self.waits.append(int(answer.headers["Retry-After"]))
                await asyncio.sleep(self.waits[-1])


async def measured(process, into):
    """The memory that a process holds, again and again."""
    while True:
        into.append(process.memory_info().rss)
        await asyncio.sleep(0.25)


@pytest.mark.slow
@pytest.mark.timeout(3000)
async def test_thousands_of_events_against_a_small_queue_are_all_done_in_bounded_memory(folder):
    environ = {
        "EMBER_EVENTS": str(folder / "events.toml"),
        "EMBER_URI_FOLDERS": str(folder),
        "EMBER_QUEUE_LIMIT": str(QUEUE),
        "EMBER_EVENT_ACK_S": "600",
    }
    with running(**environ) as server:
        brokers, held = Brokers(server.url), []
        measuring = asyncio.create_task(measured(psutil.Process(server.process.pid), held))
        await brokers.run()
        measuring.cancel()
        lines = [line for line in server.events() if line["message"] == "event"]
    assert len(list((folder / "out").iterdir())) == EVENTS
    assert Counter(line["outcome"] for line in lines)["done"] == EVENTS
    assert brokers.statuses[200] == EVENTS
    assert brokers.statuses[503] > EVENTS / 10  # the queue was full again and again
    assert max(brokers.waits) <= 30
    early, late = max(held[: len(held) // 4]), max(held)
    print(f"{brokers.statuses}, waits {Counter(brokers.waits)}, {early >> 20} → {late >> 20} MiB")
    assert late - early < 64 * 1024**2
