"""Animated GIF and WebP: the same swap on every frame; times, loops and transparency are kept."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

import function.images.decode  # noqa: F401 (makes Pillow's settings, which are the process's)
from function.images.frames import frames
from function.images.gif_file import GifFile, Indexed
from function.images.kinds import FileKind
from function.images.picture import Picture
from function.images.webp_file import WebpFile
from function.problems import Problem
from function.requests import ClipResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from function.faces.face import Box
    from function.quality_warning import QualityWarning
    from function.video.clip_swapper import ClipSwapper
    from function.video.limits import ClipLimits

log = logging.getLogger(__name__)

MOST_PIXELS = 100_000_000
"""Of all frames of an animation together: more takes longer than anybody waits for."""
_CLEAR = 255
"""The place of the transparent colour in a palette."""
_WEBP_QUALITY = 90


class AnimationFrame:
    """One frame of an animation, composited with the frames below it.

    Args:
        image: as RGBA.
        at: when it is shown, in seconds.
        duration: how long, in milliseconds.

    Attributes:
        picture: the frame as it was read.
        at, duration: as given.
        pixels: uint8 [H, W, 3] RGB, as it is going to be written.
        changed: where that is not as before.
    """

    def __init__(self, image: Image.Image, at: float, duration: int) -> None:
        every = np.asarray(image)
        alpha = every[..., 3]
        self.picture = Picture(
            np.ascontiguousarray(every[..., :3]), None if alpha.min() == 255 else alpha.copy()
        )
        self.at, self.duration = at, duration
        self.pixels = self.picture.pixels
        self.changed: Sequence[Box] = ()

    def put(self, canvas: NDArray[np.uint8], boxes: Sequence[Box]) -> None:
        """Replace the pixels in these boxes by those of the canvas."""
        self.pixels, self.changed = canvas, boxes


class Animation:
    """Reads an animation, frame after frame.

    Args:
        data: the file.
        kind: what it is.
        limits: what it may have.

    Attributes:
        count: of frames.
        size: (width, height) in pixels.
        durations: of each frame that has been read, in milliseconds.

    Raises:
        Problem: `bad_clip`, `clip_too_long` or `too_many_pixels`.
    """

    def __init__(self, data: bytes, kind: FileKind, limits: ClipLimits) -> None:
        found = frames(data)
        limits.check(size=len(data), pixels=found.pixels, frames=found.count)
        if found.total > MOST_PIXELS:
            raise Problem(
                "clip_too_long",
                f"The target has {found.total} pixels in all of its frames; the limit is"
                f" {MOST_PIXELS}.",
                image="target",
                limit=MOST_PIXELS,
                value=found.total,
            )
        self._limits, self._canvas, self.size = limits, found.canvas, found.size
        self.durations: list[int] = []
        try:
            self._image = Image.open(io.BytesIO(data), formats=(kind.name,))
            self._check_canvas()
            there = (
                found.count if kind is FileKind.GIF else int(getattr(self._image, "n_frames", 1))
            )
        except Exception:  # as in `images.decode`: whatever fails here is the file's fault
            raise _broken() from None
        self.count = min(there, found.count)

    def _check_canvas(self) -> None:
        """See that the decoder makes no larger canvas than was counted, before it makes one.

        Raises:
            ValueError: it would.
        """
        if any(side > most for side, most in zip(self._image.size, self._canvas, strict=True)):
            raise ValueError("the canvas is larger than what was counted")

    @property
    def seconds(self) -> float:
        """How long the frames that have been read are shown."""
        return sum(self.durations) / 1e3

    @property
    def loop(self) -> int | None:
        """How often it is shown: 0 means for ever; None means once, as nothing is said."""
        loop = self._image.info.get("loop")
        return loop if isinstance(loop, int) else None

    def read(self) -> AnimationFrame | None:
        """The next frame; None after the last.

        Raises:
            Problem: `bad_clip` or `clip_too_long`.
        """
        if len(self.durations) == self.count:
            return None
        try:
            self._image.seek(len(self.durations))
            self._check_canvas()
            image = self._image.convert("RGBA")
            duration = int(self._image.info.get("duration", 0))
        except Exception:  # as above
            log.debug("the animation cannot be decoded", exc_info=True)
            raise _broken() from None
        if image.size != self.size:
            image = image.crop((0, 0, *self.size))
        frame = AnimationFrame(image, self.seconds, duration)
        self.durations.append(duration)
        self._limits.check(seconds=self.seconds)
        return frame


async def swap_animation(
    swapper: ClipSwapper,
    data: bytes,
    kinds: tuple[FileKind, FileKind],
    *,
    quality: int | None,
    limits: ClipLimits,
) -> tuple[bytes, ClipResult]:
    """Swap the faces of an animated image.

    Args:
        swapper: swaps frames.
        data: the file.
        kinds: what it is, and what it becomes.
        quality: 1 to 100; None for a good one.
        limits: what it may have.

    Returns:
        The new file, and facts about it.

    Raises:
        Problem: it cannot be used, or a face is missing.
    """
    run = swapper.run
    kind, becomes = kinds
    animation = await run(Animation, data, kind, limits)
    first = await run(Animation, data, kind, limits)
    targets = await swapper.targets(first.read)
    write, finish = _writer(animation, becomes, quality)
    rate = 10.0  # frames last as long as they like; so often faces are looked for at the least
    tracker = swapper.tracker(targets, rate)
    await swapper.swap_frames(tracker, animation.read, write, 0, animation.count)
    if not swapper.swapped:
        raise swapper.nobody()
    image = await run(swapper.case.sign, await run(finish), str(becomes))
    warnings: tuple[QualityWarning, ...] = tuple(sorted(swapper.warnings))
    return image, ClipResult(
        media_type=str(becomes),
        size=animation.size,
        frames=animation.count,
        seconds=animation.seconds,
        swapped=swapper.swapped,
        most_faces=swapper.most_faces,
        warnings=warnings,
        source=swapper.source,
    )


def _writer(
    animation: Animation, becomes: FileKind, quality: int | None
) -> tuple[Callable[[AnimationFrame], None], Callable[[], bytes]]:
    """Two functions: one adds a frame to the result, the other returns the whole file."""
    if becomes is FileKind.GIF:
        gif = GifFile(animation.size, animation.loop)
        return lambda frame: gif.add(_indexed(frame), frame.duration), gif.finish
    loop = 1 if animation.loop is None else animation.loop
    webp = WebpFile(animation.size, loop, quality or _WEBP_QUALITY)
    return lambda frame: webp.add(_whole(frame), frame.duration), webp.finish


def _whole(frame: AnimationFrame) -> Image.Image:
    """A frame with all its colours, for WebP."""
    image = Image.fromarray(frame.pixels)
    if frame.picture.alpha is not None:
        image.putalpha(Image.fromarray(frame.picture.alpha))
    return image


def _indexed(frame: AnimationFrame) -> Indexed:
    """A frame in at most 256 colours, for GIF: outside of the faces exactly those that it had.

    The faces get the nearest of these, dithered, and as many new ones as there is room for.
    """
    alpha = frame.picture.alpha
    clear = alpha is not None
    room = _CLEAR if clear else _CLEAR + 1
    colours, places = _colours(frame.picture.pixels)
    if len(colours) > room:  # parts with palettes of their own
        every = Image.fromarray(frame.pixels).quantize(room, Image.Quantize.MEDIANCUT)
        table, indices = every.getpalette() or [], np.asarray(every).copy()
    else:
        indices = places.astype(np.uint8)
        table = colours.ravel().tolist()
        if frame.changed:
            table += _more(frame, room - len(colours))
            palette = Image.new("P", (1, 1))
            palette.putpalette(table + table[:3] * (256 - len(table) // 3))
            for box in frame.changed:
                rows, columns = _slices(box)
                face = Image.fromarray(np.ascontiguousarray(frame.pixels[rows, columns]))
                near = np.asarray(face.quantize(palette=palette))
                same = frame.pixels[rows, columns] == frame.picture.pixels[rows, columns]
                keep = indices[rows, columns]
                indices[rows, columns] = np.where(same.all(-1), keep, near)
    if alpha is not None:
        indices[alpha < 128] = _CLEAR
    colours = np.zeros((256, 3), np.uint8)
    colours[: len(table) // 3] = np.reshape(table, (-1, 3))
    return Indexed(indices, colours, _CLEAR if clear else None)


def _colours(pixels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """The colours of a picture, uint8 [n, 3], and for each pixel which one it has."""
    wide = pixels.astype(np.uint32)
    packed = wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]
    found, places = np.unique(packed, return_inverse=True)
    table = np.stack([found >> 16, found >> 8 & 255, found & 255], -1).astype(np.uint8)
    return table, places.reshape(packed.shape)


def _more(frame: AnimationFrame, count: int) -> list[int]:
    """Up to so many colours that the faces have now, as numbers in a row."""
    if count < 1:
        return []
    faces = [frame.pixels[_slices(box)].reshape(-1, 3) for box in frame.changed]
    strip = Image.fromarray(np.ascontiguousarray(np.concatenate(faces)[None]))
    palette = strip.quantize(count, Image.Quantize.MEDIANCUT).getpalette() or []
    return palette[: 3 * count]


def _slices(box: Box) -> tuple[slice, slice]:
    """The rows and columns of a box."""
    return slice(int(box.top), int(box.bottom)), slice(int(box.left), int(box.right))


def _broken() -> Problem:
    return Problem(
        "bad_clip", "The target is a damaged animation, or is cut short.", image="target"
    )
