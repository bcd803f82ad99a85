"""Photos for benchmarks: the two samples, enlarged to a number of megapixels."""

from __future__ import annotations

import io

from PIL import Image

from function.service.service import sample


def photo(name: str, megapixels: float) -> bytes:
    """A sample ("collins" or "hopper") resized to about `megapixels`, as JPEG."""
    with Image.open(io.BytesIO(sample(name))) as image:
        scale = (megapixels * 1e6 / (image.width * image.height)) ** 0.5
        size = round(image.width * scale), round(image.height * scale)
        out = io.BytesIO()
        image.resize(size, Image.Resampling.LANCZOS).save(out, "JPEG", quality=90)
    return out.getvalue()
