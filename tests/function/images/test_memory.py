"""Memory: what `decode` says of its peak is true, so that admission can rely on it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from tests.function.images import make
from tests.function.images.make import save
from tests.function.images.odd_file import AVIF, HEIC, heif

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# VmHWM is the peak of this process image alone; getrusage would inherit pytest's
MEASURE = """
import sys
from pathlib import Path
from function.images.decode import decode

def kib(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

small, data = (Path(path).read_bytes() for path in sys.argv[1:])
decode(small)  # loads the plugin and the profiles
before = kib("VmRSS")
picture = decode(data)
pixels = picture.pixels.size / 3
print((kib("VmHWM") - before) * 1024 / pixels)
"""

FILES: dict[str, tuple[Callable[[Image.Image], bytes], float]] = {
    "jpeg": (lambda image: save(image, "JPEG"), 12),
    "jpeg-turned": (lambda image: save(image, "JPEG", exif=make.exif(6)), 12),
    "jpeg-progressive": (lambda image: save(image, "JPEG", progressive=True, subsampling=0), 12),
    "jpeg-cmyk": (lambda image: save(image.convert("CMYK"), "JPEG"), 12),
    "jpeg-wide": (
        lambda image: save(image, "JPEG", icc_profile=make.rgb_profile(make.P3_PRIMARIES)),
        12,
    ),
    "png-rgba": (lambda image: save(_faded(image), "PNG", compress_level=1), 12),
    "gif": (lambda image: save(image.quantize(16), "GIF"), 12),
    "tiff": (lambda image: save(image, "TIFF", compression="tiff_lzw"), 12),
    "webp": (lambda image: save(_faded(image), "WEBP", method=0), 20),
}
if AVIF:
    FILES["avif"] = (lambda image: save(_faded(image), "AVIF", speed=10), 20)
if HEIC:
    FILES["heic"] = (heif, 20)


def _faded(image: Image.Image) -> Image.Image:
    image = image.convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("name", FILES)
def test_a_20_megapixel_photo_takes_no_more_than_documented(name: str, tmp_path: Path):
    build, peak = FILES[name]
    for file, size in ("small", (64, 64)), ("large", (5000, 4000)):
        gradient = Image.linear_gradient("L").resize(size)
        image = Image.merge("RGB", (gradient, gradient.rotate(180), Image.new("L", size, 99)))
        (tmp_path / file).write_bytes(build(image))
    found = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / "small", tmp_path / "large"],
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"{name}: {float(found.stdout):.1f} bytes per pixel at the peak")
    assert float(found.stdout) <= peak
