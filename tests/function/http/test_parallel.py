"""A hundred requests at once, all different: each gets the answer that it gets alone."""

from __future__ import annotations

import asyncio
import hashlib
import io

import aiohttp
import pytest
from PIL import Image, ImageEnhance, ImageOps

from tests.function.live import COLLINS, FORM, HOPPER, multipart

pytestmark = pytest.mark.slow


def variants(data):
    """Different photos of one person: sizes, crops, mirrored, brighter."""
    whole = Image.open(io.BytesIO(data)).convert("RGB")
    for size in (200, 230, 260, 290, 320):
        photo = ImageOps.fit(whole, (size, size))
        for each in (photo, ImageOps.mirror(photo)):
            for light in (0.8, 1.2):
                out = io.BytesIO()
                ImageEnhance.Brightness(each).enhance(light).save(out, "PNG")
                yield out.getvalue()


def requests():
    """60 swaps in both directions and 40 searches for faces."""
    hoppers, collinses = list(variants(HOPPER)), list(variants(COLLINS))
    pairs = [*zip(hoppers, collinses, strict=True), *zip(collinses, hoppers, strict=True)]
    pairs += zip(hoppers, reversed(collinses), strict=True)
    for number, (source, target) in enumerate(pairs):
        wish = ("format", ["png", "jpeg", "webp"][number % 3])
        yield "/v1/swap", multipart(("source", source), ("target", target), wish)
    for data in (*hoppers, *collinses):
        yield "/v1/faces", multipart(("image", data))


async def post(session, live, path, body):
    same = {"Ember-Request-Id": hashlib.sha256(body).hexdigest()}  # which results carry
    async with session.post(live.url + path, data=body, headers=FORM | same) as response:
        assert response.status == 200, await response.text()
        if path == "/v1/swap":
            return await response.read()
        told = await response.json()
        return {key: told[key] for key in ("width", "height", "faces", "warnings")}


async def test_a_hundred_parallel_requests_get_their_sequential_answers(live):
    wanted = list(requests())
    assert len(wanted) == len(set(wanted)) == 100
    connector = aiohttp.TCPConnector(limit=100)
    async with aiohttp.ClientSession(connector=connector) as session:
        alone = [await post(session, live, *each) for each in wanted]
        crowd = await asyncio.gather(*(post(session, live, *each) for each in wanted))
    assert crowd == alone
    assert len({str(answer) for answer in alone}) == 100
    assert live.service.in_work == 0
