"""Files that are damaged, that lie, or that are something else."""

from __future__ import annotations

import io
import os
import random
import struct
from contextlib import suppress

import av
import numpy as np
import pytest
from PIL import Image

from function.images import kinds
from function.images.frames import frames
from function.images.kinds import FileKind
from function.problems import Problem
from function.video.animation import Animation
from function.video.facts import examine
from function.video.limits import ClipLimits
from function.video.reader import VideoReader
from tests.function.video.films import PHOTOS, animation, film, scene

LIMITS = ClipLimits()


@pytest.fixture(scope="module")
def webm(folder):
    frames = list(scene(75, (96, 54)))
    return film(folder / "files.webm", frames, codec="libvpx-vp9", sound="libopus")


@pytest.fixture(scope="module")
def gif(folder):
    return animation(folder / "files.gif", scene(4, (96, 54)), duration=40)


@pytest.fixture(scope="module")
def faststart(plain, folder):
    """The plain clip with its index in front."""
    path = folder / "faststart.mp4"
    with (
        av.open(str(plain)) as old,
        av.open(str(path), "w", options={"movflags": "faststart"}) as new,
    ):
        streams = {each.index: new.add_stream_from_template(each) for each in old.streams}
        for packet in old.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream.index]
                new.mux(packet)
    return path


def refused(path, data, kind, limits=LIMITS):
    """The problem with a file, of which every frame is read."""
    path.write_bytes(data)
    with pytest.raises(Problem) as raised:
        read(path, kind, limits)
    return raised.value


def read(path, kind, limits=LIMITS):
    """Every frame of a video."""
    examine(path, kind, limits)
    reader = VideoReader(path, kind, limits)
    while reader.next() is not None:
        pass


def play(data, kind, limits=LIMITS):
    """Every frame of an animation."""
    shown = Animation(data, kind, limits)
    while shown.read():
        pass


@pytest.mark.parametrize(
    ("name", "kind"),
    [("plain.mp4", FileKind.MP4), ("files.webm", FileKind.WEBM), ("files.gif", FileKind.GIF)],
)
def test_kinds_are_recognised_by_their_bytes(name, kind, folder, plain, webm, gif):
    assert kinds.clip((folder / name).read_bytes()) is kind


def test_quicktime_and_matroska_are_distinguished_from_mp4_and_webm(folder):
    for name, kind in (("k.mov", FileKind.MOV), ("k.mkv", FileKind.MKV)):
        path = film(folder / name, list(scene(1, (96, 54))), sound=None)
        assert kinds.video(path.read_bytes()[: kinds.HEAD]) is kind


def test_photos_are_no_clips(folder):
    for path in PHOTOS.iterdir():
        assert kinds.clip(path.read_bytes()) is None
    for name in ("gif", "webp", "avif", "png"):
        out = io.BytesIO()
        Image.new("RGB", (32, 32), "red").save(out, name)
        assert kinds.clip(out.getvalue()) is None
    assert kinds.clip(b"") is kinds.clip(b"GIF89a") is kinds.clip(b"RIFF") is None


def test_the_walk_over_a_gif_ends_whatever_its_bytes_are(gif):
    data, odd = gif.read_bytes(), random.Random(3)
    assert frames(data).count == 4
    for _ in range(300):
        bent = bytearray(data[: odd.randrange(len(data))])
        for _ in range(5):
            if bent:
                bent[odd.randrange(len(bent))] = odd.randrange(256)
        assert frames(bytes(bent)).count >= 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_video_that_is_cut_short_is_refused(share, plain, faststart, webm, tmp_path):
    for path, kind in ((plain, FileKind.MP4), (faststart, FileKind.MP4), (webm, FileKind.WEBM)):
        data = path.read_bytes()
        if kind is FileKind.WEBM and share > 0.7:
            continue  # too little is missing to be sure
        problem = refused(tmp_path / "cut", data[: int(len(data) * share)], kind)
        assert problem.code == "bad_clip"
        assert str(tmp_path) not in problem.detail


def test_damage_in_the_middle_is_refused(faststart, tmp_path):
    data = bytearray(faststart.read_bytes())
    middle = len(data) * 2 // 3
    data[middle : middle + 4000] = os.urandom(4000)
    assert refused(tmp_path / "bent", bytes(data), FileKind.MP4).code == "bad_clip"


@pytest.mark.parametrize("kind", [FileKind.MP4, FileKind.WEBM, FileKind.MKV, FileKind.MOV])
def test_garbage_is_refused(kind, tmp_path):
    head = (
        b"\0\0\0\x18ftypisom\0\0\0\0" if kind in {FileKind.MP4, FileKind.MOV} else b"\x1aE\xdf\xa3"
    )
    for data in (head, head + random.Random(1).randbytes(5000), head + bytes(5000)):
        assert refused(tmp_path / "garbage", data, kind).code == "bad_clip"


def test_random_damage_never_ends_the_process_and_has_a_code(faststart, webm, tmp_path):
    odd = random.Random(5)
    for path, kind in ((faststart, FileKind.MP4), (webm, FileKind.WEBM)):
        data = path.read_bytes()
        for _ in range(12):
            bent = bytearray(data)
            for _ in range(odd.choice((1, 20, 300))):
                bent[odd.randrange(len(bent))] = odd.randrange(256)
            (tmp_path / "fuzz").write_bytes(bent)
            with suppress(Problem):
                read(tmp_path / "fuzz", kind)


def test_a_playlist_opens_nothing(tmp_path, plain):
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{plain}\n#EXT-X-ENDLIST\n".encode()
    assert kinds.clip(text) is None
    for kind in (FileKind.MP4, FileKind.MKV):
        assert refused(tmp_path / "list.mp4", text, kind).code == "bad_clip"


def test_more_pixels_than_the_header_says_are_not_decoded(tmp_path):
    """The container says 64 × 64; the pictures are far larger."""
    large = [np.zeros((2048, 2048, 3), np.uint8)]
    data = bytearray(film(tmp_path / "large.mp4", large, sound=None).read_bytes())
    for at in _all(data, struct.pack(">HH", 2048, 2048)):
        data[at : at + 4] = struct.pack(">HH", 64, 64)
    problem = refused(
        tmp_path / "lying.mp4", bytes(data), FileKind.MP4, ClipLimits(pixels=1_000_000)
    )
    assert problem.code in {"too_many_pixels", "bad_clip"}


def test_a_header_that_hides_frames_changes_nothing(plain, tmp_path):
    """Limits count what is there: the movie header says a hundredth of a second."""
    data = bytearray(plain.read_bytes())
    at = data.index(b"mvhd") + 4 + 16
    data[at : at + 4] = struct.pack(">I", 10)
    (tmp_path / "short.mp4").write_bytes(data)
    with pytest.raises(Problem) as raised:
        examine(tmp_path / "short.mp4", FileKind.MP4, ClipLimits(frames=20))
    assert raised.value.code == "clip_too_long"


def test_a_file_with_sound_only_has_no_pictures(tmp_path):
    path = tmp_path / "song.mp4"
    with av.open(str(path), "w") as file:
        stream = file.add_stream("aac", rate=48000)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(
            np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
        )
        frame.sample_rate = 48000
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    assert "no pictures" in refused(path, path.read_bytes(), FileKind.MP4).detail


def test_a_bomb_of_an_animation_is_refused_by_its_header(tmp_path):
    tiny = animation(tmp_path / "bomb.gif", scene(3, (16, 16)), duration=40)
    data = bytearray(tiny.read_bytes())
    data[6:10] = struct.pack("<HH", 60_000, 60_000)
    with pytest.raises(Problem) as raised:
        Animation(bytes(data), FileKind.GIF, LIMITS)
    assert raised.value.code == "too_many_pixels"


def test_an_animation_of_many_frames_is_refused(gif):
    data = gif.read_bytes()
    for limits in (ClipLimits(frames=3), ClipLimits(seconds=0.1), ClipLimits(size=100)):
        with pytest.raises(Problem) as raised:
            play(data, FileKind.GIF, limits)
        assert raised.value.code == "clip_too_long"


def test_an_animation_that_is_cut_short_is_refused(tmp_path, folder):
    for name in ("cut.gif", "cut.webp"):
        data = animation(tmp_path / name, scene(6, (96, 54)), duration=40).read_bytes()
        kind = kinds.animation(data)
        with pytest.raises(Problem) as raised:
            play(data[: len(data) // 2], kind)
        assert raised.value.code == "bad_clip"


def _all(data, wanted):
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)
