"""`python -m tests.golden` makes the golden image of the embedded set anew, after the swap changed.

Look at the picture that it keeps of the whole result before you commit the small one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

import cv2

from function import settings
from function.images.decode import decode
from function.process.wiring.service import embedded
from function.requests import SwapRequest, Upload
from function.service import golden
from function.service.service import Service
from function.telemetry.timings import Timings
from warmup.models import manifest
from warmup.models.golden import read

SIDE = 96


async def main() -> None:
    expected = read(embedded())
    models = manifest.read(embedded())
    service = Service(models, workers=1, max_pixels=settings.load({}).images.max_pixels)
    await service.load()
    source = Upload(expected.source.read_bytes(), "source")
    target = Upload(expected.target.read_bytes(), "target")
    result = await service.swap(SwapRequest((source,), target), Timings())
    whole = Path(gettempdir()) / "golden.jpg"
    whole.write_bytes(result.image)
    pixels = golden.shrunk(decode(result.image).pixels, (SIDE, SIDE))
    cv2.imwrite(str(expected.image), pixels[..., ::-1])
    golden.check(replace(expected, max_distance=2), result.image, result.faces)
    original = golden.shrunk(decode(target.data).pixels, (SIDE, SIDE))
    print(f"unchanged, it would be like it to {golden.likeness(original, original, pixels):.1f} dB")
    service.close()


if __name__ == "__main__":
    asyncio.run(main())
