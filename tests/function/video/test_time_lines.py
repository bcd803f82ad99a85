"""What a file shows is not all that is in it: trimmed clips, and sound in codings nobody knows."""

from __future__ import annotations

import av
import pytest

from function.images.kinds import FileKind
from function.problems import Problem
from function.quality_warning import QualityWarning
from function.video.facts import examine
from function.video.limits import ClipLimits
from tests.function.video.edit_lists import edited
from tests.function.video.films import film, frames_of, scene, times_of

PACKET_S = 1024 / 48000  # of AAC

TRIMS = {
    "middle": ((0.7, 0.6),),
    "beginning": ((0.0, 0.4),),
    "end": ((1.5, 0.5),),
    "at-a-key-frame": ((1.0, 0.4),),
    "middle-left-out": ((0.2, 0.4), (1.4, 0.4)),
    "after-a-pause": ((None, 0.5), (0.7, 0.4)),
    "turned-round": ((1.4, 0.4), (0.2, 0.4)),
}


@pytest.fixture(scope="module")
def whole(folder):
    return film(folder / "whole.mp4", list(scene(50)), options={"g": "25"})


@pytest.fixture(scope="module", params=TRIMS)
def trimmed(request, whole, folder):
    path = folder / f"{request.param}.mp4"
    path.write_bytes(edited(whole.read_bytes(), *TRIMS[request.param]))
    return path


def heard(path):
    """Seconds of sound that a player plays."""
    with av.open(str(path)) as file:
        return sum(frame.samples for frame in file.decode(audio=0)) / 48000


def hidden(path):
    """The packets of sound that are in a file, and of which nothing is played."""
    with av.open(str(path)) as file:
        found = [(each.is_discard, bytes(each)) for each in file.demux(audio=0) if each.size]
    return {packet for unseen, packet in found if unseen} - {
        packet for unseen, packet in found if not unseen
    }


def test_what_a_player_shows_is_what_is_counted(trimmed):
    facts = examine(trimmed, FileKind.MP4, ClipLimits())
    assert facts.frames == len(frames_of(trimmed))
    assert facts.seconds == pytest.approx(sum(length for at, length in shown(trimmed)), abs=0.05)


def shown(path):
    return [edit for edit in TRIMS[path.stem] if edit[0] is not None]


@pytest.mark.parametrize("kind", [FileKind.MP4, FileKind.MKV])
def test_a_trimmed_clip_stays_trimmed_in_pictures_and_sound(trimmed, kind, folder, swap):
    out = folder / f"{trimmed.stem}-out{kind.suffix}"
    result = swap(trimmed, out, kind=kind)
    assert result.frames == len(frames_of(out)) == len(frames_of(trimmed))
    if kind is not FileKind.MKV:  # which counts in milliseconds
        assert times_of(out) == times_of(trimmed)
    assert heard(out) == pytest.approx(heard(trimmed), abs=2.1 * PACKET_S)
    # Of what was cut off nothing is left but one packet, with which decoders start up.
    written = out.read_bytes()
    removed = hidden(trimmed)
    assert sum(packet in written for packet in removed) <= 1
    assert len(removed) > 5 or trimmed.stem == "beginning"


def test_a_trimmed_file_of_which_the_end_is_missing_is_cut_short(whole, folder):
    """Its index is in front, as phones write it for sending."""
    trimmed = folder / "middle-whole.mp4"
    trimmed.write_bytes(edited(whole.read_bytes(), (0.7, 0.6)))
    data = _index_first(trimmed.read_bytes())
    path = folder / "short.mp4"
    path.write_bytes(data)
    assert examine(path, FileKind.MP4, ClipLimits()).frames == len(frames_of(trimmed))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(Problem, match="cut short"):
        examine(path, FileKind.MP4, ClipLimits())


def _index_first(data):
    """The same film with `moov` before `mdat`."""
    at = data.index(b"moov") - 4
    moov = bytearray(data[at:])
    begin = data.index(b"mdat") - 4
    for table in _places(moov, b"stco"):
        count = int.from_bytes(moov[table + 8 : table + 12])
        for place in range(table + 12, table + 12 + 4 * count, 4):
            moved = int.from_bytes(moov[place : place + 4]) + len(moov)
            moov[place : place + 4] = moved.to_bytes(4)
    return data[:begin] + moov + data[begin:at]


def _places(data, word):
    at = data.find(word)
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


def unknown(data, name=b"apac"):
    """The film with its last track of sound in a coding that FFmpeg does not know."""
    bent = bytearray(data)
    at = bent.index(b"mp4a", bent.rindex(b"stsd"))
    bent[at : at + 4] = name
    at = bent.rindex(b"esds")
    bent[at : at + 4] = b"dapa"
    return bytes(bent)


@pytest.mark.parametrize("kind", [FileKind.MOV, FileKind.MKV])
@pytest.mark.parametrize("name", [b"apac", b"zzzz"])
def test_sound_in_a_coding_that_nobody_knows_is_named_at_once(name, kind, folder, swap):
    target = folder / "spatial.mov"
    target.write_bytes(unknown(film(target, list(scene(2))).read_bytes(), name))
    with pytest.raises(Problem, match="sound of the target") as raised:
        swap(target, folder / f"spatial-out{kind.suffix}", kind=kind)
    assert raised.value.code == "bad_clip"
    assert "AAC" in raised.value.hint
    assert not swap.told  # nothing was computed in vain


def test_sound_that_is_not_known_is_left_out_with_a_warning_where_other_sound_is(folder, swap):
    """As phones record it: AAC for everybody, and a spatial track beside it."""
    twice = folder / "twice.mov"
    once = film(folder / "once.mov", list(scene(3)))
    with av.open(str(once)) as old, av.open(str(twice), "w") as new:
        pictures, sound = (new.add_stream_from_template(each) for each in old.streams)
        again = new.add_stream_from_template(old.streams.audio[0])
        for packet in list(old.demux()):
            for stream in (pictures,) if packet.stream_index == 0 else (sound, again):
                copy = av.Packet(bytes(packet))
                copy.pts, copy.dts, copy.time_base = packet.pts, packet.dts, packet.time_base
                copy.duration, copy.is_keyframe = packet.duration, packet.is_keyframe
                copy.stream = stream
                if packet.size:
                    new.mux(copy)
    twice.write_bytes(unknown(twice.read_bytes()))
    out = folder / "twice-out.mov"
    assert QualityWarning.SOUND_LEFT_OUT in swap(twice, out).warnings
    with av.open(str(out)) as made:
        (kept,) = made.streams.audio
        assert kept.codec_context.name == "aac"
    assert heard(out) == pytest.approx(heard(once), abs=PACKET_S)


def test_a_clip_tells_how_many_faces_were_swapped_at_most_in_a_frame(swapped, folder, swap, plain):
    _, result, _ = swapped
    assert result.most_faces == 2
    assert swap(plain, folder / "one.mp4", "largest").most_faces == 1
