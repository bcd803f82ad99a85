"""Clips that the tests make: two people in front of a camera that pans, zooms and turns."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from PIL import Image

PHOTOS = Path(__file__).parents[2] / "photos"
TICK = Fraction(1, 12800)
SIZE = (384, 216)


def scene(count=25, size=SIZE, speed=1.0):
    """Frames uint8 [H, W, 3] RGB: Collins on the left, Hopper on the right."""
    wide = np.concatenate([_tall("astronaut.png"), _tall("grace_hopper.jpg")], 1)
    for k in range(count):
        t = 2 * np.pi * speed * k / 50
        middle = wide.shape[1] / 2 + 20 * np.sin(t), wide.shape[0] * 0.42 + 8 * np.cos(t)
        zoom = size[0] / wide.shape[1] * (1.08 + 0.06 * np.sin(t))
        matrix = cv2.getRotationMatrix2D(middle, 4 * np.sin(t), zoom)
        matrix[:, 2] += np.array(size) / 2 - middle
        yield cv2.warpAffine(wide, matrix, size, flags=cv2.INTER_AREA, borderMode=2)


def film(
    path,
    frames=None,
    *,
    codec="libx264",
    times=None,
    sound="aac",
    turned=0,
    display=None,
    tick=TICK,
    tags=(1, 1, 1, 1),
    options=None,
    **container,
):
    """Write a video; `times` are seconds of each frame, by default 25 a second."""
    frames = list(scene() if frames is None else frames)
    times = times or [Fraction(k, 25) for k in range(len(frames))]
    fast = (
        {"preset": "ultrafast", "crf": "12"}
        if codec == "libx264"
        else {"deadline": "realtime", "cpu-used": "8", "crf": "12"}
    )
    with av.open(str(path), "w", **container) as file:
        stream = file.add_stream(codec, rate=25, options=fast | (options or {}))
        stream.height, stream.width = np.rot90(frames[0], -turned // 90).shape[:2]
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.time_base = tick
        context.color_primaries, context.color_trc, context.colorspace, context.color_range = tags
        if turned:
            stream.set_display_rotation(turned)
        if display:
            stream.set_display_matrix(display)
        voice = _voice(file, sound) if sound else None
        for pixels, time in zip(frames, times, strict=True):
            coded = np.ascontiguousarray(np.rot90(pixels, -turned // 90))
            frame = av.VideoFrame.from_ndarray(coded, format="rgb24").reformat(
                format="yuv420p", dst_colorspace=tags[2], dst_color_range=tags[3]
            )
            frame.pts, frame.time_base = round(time / tick), tick
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
        if voice:
            _sing(file, voice, float(times[-1]))
    return path


def animation(path, frames, **options):
    """Write an animated GIF or WebP."""
    first, *rest = [Image.fromarray(frame) for frame in frames]
    first.save(path, save_all=True, append_images=rest, **options)
    return path


def frames_of(path, count=None):
    """The frames of a video, upright, uint8 [H, W, 3] RGB."""
    with av.open(str(path)) as file:
        found = []
        for frame in file.decode(video=0):
            found.append(np.rot90(frame.to_ndarray(format="rgb24"), frame.rotation // 90))
            if len(found) == count:
                break
        return found


def times_of(path):
    """When each frame of a video is shown, and how long the stream says that frames last."""
    with av.open(str(path)) as file:
        return [Fraction(frame.pts) * frame.time_base for frame in file.decode(video=0)]


def sound_of(path):
    """The packets of sound: (seconds, bytes)."""
    with av.open(str(path)) as file:
        return [
            (Fraction(packet.pts) * packet.time_base, bytes(packet))
            for packet in file.demux(audio=0)
            if packet.size
        ]


def _tall(name, height=360):
    photo = np.asarray(Image.open(PHOTOS / name).convert("RGB"))
    return cv2.resize(photo, (round(photo.shape[1] * height / photo.shape[0]), height))


def _voice(file, sound):
    stream = file.add_stream(sound, rate=48000)
    stream.layout = "stereo"
    return stream


def _sing(file, stream, seconds):
    size = 960 if stream.codec_context.name == "libopus" else 1024
    planar = stream.codec_context.format.is_planar
    for start in range(0, int(seconds * 48000), size):
        wave = 0.4 * np.sin(np.arange(start, start + size) * 440 * 2 * np.pi / 48000)
        both = np.stack([wave, wave]).astype(np.float32)
        if stream.codec_context.format.name.startswith("s16"):
            both = (both * 32767).astype(np.int16)
        shaped = both if planar else both.T.reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(shaped), format=stream.codec_context.format.name, layout="stereo"
        )
        frame.sample_rate, frame.pts, frame.time_base = 48000, start, Fraction(1, 48000)
        file.mux(stream.encode(frame))
    file.mux(stream.encode(None))
