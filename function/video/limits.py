"""How large a clip may be."""

from __future__ import annotations

from dataclasses import dataclass

from function.problems import Problem


@dataclass(frozen=True, slots=True)
class ClipLimits:
    """The most that a clip may have.

    Attributes:
        seconds: of playing time.
        pixels: of one frame.
        frames: of the whole.
        size: bytes of the file.
        direct: pixels, of all frames together, of an animation that is answered at once.
    """

    seconds: float = 300.0
    pixels: int = 9_000_000
    frames: int = 20_000
    size: int = 512 * 1024**2
    direct: int = 20_000_000

    def check(
        self, *, seconds: float = 0.0, pixels: int = 0, frames: int = 0, size: int = 0
    ) -> None:
        """Refuse what is too much.

        Raises:
            Problem: `clip_too_long` or `too_many_pixels`.
        """
        checks = (
            (seconds, self.seconds, "clip_too_long", "lasts {value:.0f} seconds"),
            (frames, self.frames, "clip_too_long", "has {value} frames or more"),
            (size, self.size, "clip_too_long", "has {value} bytes"),
            (pixels, self.pixels, "too_many_pixels", "has {value} pixels in each frame"),
        )
        for value, limit, code, text in checks:
            if value > limit:
                raise Problem(
                    code,
                    f"The target {text.format(value=value)}; the limit is {limit:g}.",
                    image="target",
                    limit=limit,
                    value=value,
                )
