"""What decodes videos is an extra, and so may not be there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from function.problems import Problem
from warmup.extras import bring

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def decoder() -> Iterator[None]:
    """Say what is missing where the body imports what videos need, and it is not there.

    Raises:
        Problem: `unsupported_media_type`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "av":
            raise
        raise Problem(
            "unsupported_media_type",
            "The target is a video, and this server has no decoder for it. To add one:"
            f" {bring('video')}.",
            image="target",
            hint="Send a photo, or an animated GIF or WebP.",
        ) from None
