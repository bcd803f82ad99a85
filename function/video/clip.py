"""Swapping the faces of a clip, whether it is a video or an animation."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from function.images import kinds
from function.images.kinds import FileKind
from function.problems import Problem
from function.video.animation import swap_animation
from function.video.decoder import decoder
from function.video.parts import Folder

if TYPE_CHECKING:
    from function.requests import ClipRequest, ClipResult, PartStore
    from function.video.clip_swapper import ClipSwapper
    from function.video.limits import ClipLimits

_FITS = {
    FileKind.MP4: {FileKind.MP4, FileKind.MOV, FileKind.MKV},
    FileKind.MOV: {FileKind.MP4, FileKind.MOV, FileKind.MKV},
    FileKind.MKV: {FileKind.MP4, FileKind.MOV, FileKind.MKV},
    FileKind.WEBM: {FileKind.WEBM, FileKind.MKV},
}
"""What a video of each kind can become without a change to its sound, mostly."""


async def swap_clip(
    swapper: ClipSwapper,
    wanted: ClipRequest,
    limits: ClipLimits,
    parts: PartStore | None,
) -> ClipResult:
    """Swap the faces of a clip.

    Args:
        swapper: swaps frames.
        wanted: the request.
        limits: what the clip may have.
        parts: keeps finished parts for another try at the same request; None to keep none.

    Raises:
        Problem: the clip cannot be used, a face is missing, or a decoder is.
    """
    kind = await swapper.run(_kind, wanted.target)
    if kind.still:
        data = await swapper.run(_read, wanted.target, limits)
        image, result = await swap_animation(
            swapper,
            data,
            (kind, wanted.kind or kind),
            quality=wanted.quality,
            limits=limits,
        )
        await swapper.run(wanted.out.write_bytes, image)
        return result
    if wanted.kind and wanted.kind not in _FITS[kind]:
        raise Problem(
            "bad_value",
            f"A {kind.suffix} file can become {', '.join(sorted(k.suffix for k in _FITS[kind]))}.",
            field="format",
        )
    with decoder():
        await swapper.run(import_module, "function.video.video_swap")
    from function.video.video_swap import VideoSwap

    if parts:
        return await VideoSwap(swapper, wanted, limits, parts, kind).make()
    with TemporaryDirectory(prefix="ember-clip-") as folder:
        return await VideoSwap(swapper, wanted, limits, Folder(Path(folder)), kind).make()


def _kind(path: Path) -> FileKind:
    """The kind of a clip.

    Raises:
        Problem: the file is no clip, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(kinds.HEAD)
            kind = kinds.video(head)
            if kind is None and head.startswith((b"GIF8", b"RIFF")):
                kind = kinds.animation(head + file.read())
    except OSError as error:
        raise Problem("bad_clip", f"The target cannot be read: {error.strerror}.") from None
    if kind is None:
        raise Problem(
            "unsupported_media_type",
            "The target is no clip that Ember knows.",
            image="target",
            hint="Send MP4, QuickTime, WebM or Matroska, or an animated GIF or WebP.",
        )
    return kind


def _read(path: Path, limits: ClipLimits) -> bytes:
    limits.check(size=path.stat().st_size)
    return path.read_bytes()
