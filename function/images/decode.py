"""Bytes to an upright sRGB `Picture`: the only decoder of photos in Ember.

One path for every format and every caller, so that what is detected is what is composited. It
reads the first image of a file (of a TIFF, the picture), never makes up pixels that are missing,
and never decodes before it knows how many pixels there are.
"""

from __future__ import annotations

import hashlib
import io
import logging
import warnings

from PIL import AvifImagePlugin, ExifTags, Image, ImageChops, ImageFile

from function.images import colour, guard, signature, tiff
from function.images.jpeg import END, jpeg
from function.images.picture import Picture
from function.problems import Problem
from function.quality_warning import QualityWarning
from warmup.extras import bring

# Pillow's settings are the process's, so they are made once. Pixels are counted here, per request;
# Pillow's own limit would make warnings of some of those problems. Its other warnings are about
# metadata, which Ember drops. AVIF would start a thread per core of the host, and gains nothing.
Image.MAX_IMAGE_PIXELS = None
AvifImagePlugin.DEFAULT_MAX_THREADS = 1
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")

_NOISE = hashlib.shake_128(b"no pixels").digest(4096).replace(b"\xff", b"\xfe")

_log = logging.getLogger(__name__)

_PHOTOS = {
    f"image/{kind}" for kind in ("jpeg", "png", "gif", "webp", "avif", "heic", "tiff", "bmp")
}

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(
    data: bytes,
    *,
    max_pixels: int = 50_000_000,
    name: str = "image",
    media_type: str | None = None,
) -> Picture:
    """Decode one photo.

    Peak memory besides `data`, in bytes per pixel: 12 for JPEG, PNG, GIF, BMP and TIFF (Pillow
    keeps 4, turning or converting takes 4 more, the result 3 or 4), 20 for WebP, AVIF and HEIC,
    whose decoders keep canvases of their own. 3 stay, 4 with transparency.

    Args:
        data: the file.
        max_pixels: more pixels than this are refused before anything is decoded.
        name: the request's field; problems name it and carry it as `image`.
        media_type: what the sender declared, if anything. The content decides; this only explains a
            refusal better.

    Returns:
        The picture, upright, in sRGB.

    Raises:
        Problem: `bad_image` for an empty, damaged or cut short image, `unsupported_media_type` for
            anything that is no photo or has no decoder here, `too_many_pixels`.
    """
    if not data:
        raise Problem("bad_image", f"The {name} is empty (0 bytes).", image=name)
    kind = signature.image_format(data)
    if kind is None:
        declared = f", though sent as {media_type}" if media_type in _PHOTOS else ""
        raise Problem(
            "unsupported_media_type",
            f"The {name} is {signature.describe(data)}{declared}.",
            image=name,
        )
    if kind == "HEIF":
        _add_heif(name)
    if kind == "TIFF":
        if tiff.is_raw(data):
            raise Problem(
                "unsupported_media_type",
                f"The {name} is {signature.RAW}.",
                image=name,
                hint="Develop it, and send it as JPEG, PNG or TIFF.",
            )
        data = tiff.with_picture_first(data)
    _count(guard.pixels_before_opening(kind, data), max_pixels, name)
    file = _File(data)
    # Decoders meet hostile bytes here, and there is no class of exception that Pillow and its
    # plugins have not been seen to raise on some (SyntaxError, struct.error, KeyError, zlib.error,
    # …). This block does nothing but read the file, so whatever fails in it is the file's fault.
    try:
        opened = Image.open(file, formats=(kind,))
        _count(guard.pixels(opened), max_pixels // guard.slowness(opened), name)
        file.ran_out |= guard.pixels_end(opened) > len(data)
        guard.refuse_traps(opened, data)
        several = _has_several(opened, data)
        endless = kind == "JPEG" and not (end := jpeg(data)).ended
        if endless:
            file.ran_out = True
            opened = _with_end(data, refined=end.refined)
        opened.load()
        image = _upright(opened)
        del opened  # a turned image is a copy
        pixels, alpha, gray = colour.unpack(image)
    except Problem:
        raise
    except Exception:
        _log.debug("the %s cannot be decoded", name, exc_info=True)
        problem = _broken(kind, name, cut_short=file.ran_out or guard.ends_early(kind, data))
    else:
        seen = (QualityWarning.FIRST_FRAME, several), (QualityWarning.NO_END, endless)
        found = tuple(warning for warning, holds in seen if holds)
        return Picture(pixels, alpha, gray, kind.lower().replace("heif", "heic"), found)
    # out here the problem has no context, which would keep the half decoded image in memory
    raise problem


class _File(io.BytesIO):
    """The bytes of a file, and whether somebody asked for more of them than there are."""

    ran_out = False

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = super().read(size)
        # pixel data is read in blocks, the last of which is short in a sound file too
        if size is not None and (not chunk or len(chunk) < size < ImageFile.MAXBLOCK):
            self.ran_out = True
        return chunk


def _add_heif(name: str) -> None:
    """Teach Pillow HEIC, if the extra is installed; registering again changes nothing."""
    try:
        import pillow_heif
    except ImportError:
        raise Problem(
            "unsupported_media_type",
            f"The {name} is a HEIC photo, and this server has no decoder for it. Send it as JPEG,"
            f" or install the decoder: {bring('heic')}.",
            image=name,
        ) from None
    pillow_heif.register_heif_opener()


def _count(value: int, limit: int, name: str) -> None:
    """Refuse an image with too many pixels."""
    if value > limit:
        raise Problem(
            "too_many_pixels",
            f"The {name} has {value} pixels; the limit is {limit}.",
            image=name,
            limit=limit,
            value=value,
        )


def _has_several(opened: ImageFile.ImageFile, data: bytes) -> bool:
    """Whether the file is animated or has pages (a phone's MPO only adds versions of the photo)."""
    if opened.format == "MPO":
        return False
    if opened.format == "GIF":  # looking for the second frame moves the reader, so use another one
        opened = Image.open(io.BytesIO(data), formats=("GIF",))
    try:
        return bool(getattr(opened, "is_animated", False))
    except Exception:
        return True  # there is a second frame, though a damaged one


def _with_end(data: bytes, *, refined: bool) -> ImageFile.ImageFile:
    """A JPEG that lacks nothing but the marker of its end, with one.

    A decoder makes up pixels that are missing from whatever comes instead of them. So where other
    bytes before the end change no pixel, none is missing.

    Args:
        data: the file, whose size is known to be fit for decoding.
        refined: whether all scans are there.

    Raises:
        ValueError: pixels are missing.
    """
    start = data.removesuffix(b"\xff")
    whole, other = (
        Image.open(io.BytesIO(start + tail + END), formats=("JPEG",)) for tail in (b"", _NOISE)
    )
    if not refined or ImageChops.difference(whole, other).getbbox():
        raise ValueError("the pixels end too early")
    return whole


def _upright(opened: ImageFile.ImageFile) -> Image.Image:
    """The image as the camera was held. The reader is left empty, so that its buffers go."""
    orientation = 1
    if opened.format != "TIFF":  # Pillow turns these on loading
        try:
            orientation = opened.getexif().get(ExifTags.Base.Orientation, 1)
        except Exception:
            orientation = 1  # damaged metadata is no reason to refuse the photo
    image: Image.Image = opened
    if opened.format in {"JPEG", "MPO"} and opened.mode == "CMYK" and "adobe" not in opened.info:
        # Pillow takes all CMYK for Adobe's, which is inverted; without the marker it is not
        image = ImageChops.invert(opened)
    turn = _TURNS.get(orientation)
    vars(opened).pop("_decoder", None)
    opened.fp = None
    return image.transpose(turn) if turn is not None else image


def _broken(kind: str, name: str, *, cut_short: bool) -> Problem:
    """Says what is wrong with an image that could not be decoded."""
    label = {"HEIF": "HEIC", "WEBP": "WebP"}.get(kind, kind)
    if cut_short:
        detail, hint = (
            f"The {name} is cut short: its {label} data ends too early.",
            "Use the whole file.",
        )
    else:
        detail = f"The {name} is a damaged {label} file, or of a variant that cannot be decoded."
        hint = "Open it in a viewer and save it anew, as JPEG or PNG."
    return Problem("bad_image", detail, image=name, cut_short=cut_short, hint=hint)
