"""Metadata in videos: written with the head or added to the end, and read without reading all."""

from __future__ import annotations

import os
from dataclasses import replace

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.images.kinds import FileKind
from function.trust.marking import metadata, provenance
from function.trust.marking.containers import movie
from function.trust.marking.containers.boxes import XMP, box, boxes
from function.video.facts import examine
from function.video.limits import ClipLimits
from function.video.reader import VideoReader
from function.video.writer import Encoding, Joiner, PartWriter, part_facts
from tests.function.trust.marking.packets import FOREIGN, GENERATED, PLAIN, PRIVATE, SWAP
from tests.function.video.films import film, scene

SUFFIX = {FileKind.MP4: "mp4", FileKind.MOV: "mov", FileKind.MKV: "mkv", FileKind.WEBM: "webm"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def joined(folder):
    """Makes the file that Ember writes of a clip, with a statement or without."""
    source = film(folder / "source.mkv", list(scene(4, (96, 54))), sound="libopus")
    silent = film(folder / "silent.mkv", list(scene(4, (96, 54))), sound=None)
    facts = examine(source, FileKind.MKV, ClipLimits())

    def join(kind, statement, name="out"):
        encoding = Encoding(facts, kind)
        writer, reader = PartWriter(encoding), VideoReader(source, FileKind.MKV, ClipLimits())
        while frame := reader.next():
            writer.add(frame)
        reader.close()
        part = writer.finish()
        times = [packet[0] for packet in part_facts(part)["packets"]]
        out = folder / f"{name}.{SUFFIX[kind]}"
        sound = silent if kind is FileKind.MOV else source  # which has no Opus
        joiner = Joiner(out, sound, encoding, times, statement)
        joiner.add(part)
        joiner.close()
        return out

    return join


@pytest.fixture(scope="module")
def whole(joined):
    """The bytes of a clip of each kind."""
    return {kind: joined(kind, SWAP, "whole").read_bytes() for kind in SUFFIX}


def packets(path):
    """Everything that a decoder gets of a file."""
    with av.open(str(path)) as file:
        return [
            (packet.stream_index, packet.pts, packet.duration, bytes(packet))
            for packet in file.demux()
        ]


def at_top(data, kind):
    return [each for each in boxes(data) if each.kind == kind]


@pytest.mark.parametrize("statement", [PLAIN, SWAP], ids=["plain", "producer"])
@pytest.mark.parametrize("kind", SUFFIX)
def test_a_clip_says_what_it_is_and_plays_as_before(kind, statement, joined):
    bare, marked = joined(kind, None, "bare"), joined(kind, statement, "marked")
    assert metadata.read(bare) == metadata.FoundMetadata()
    found = metadata.read(marked)
    assert found == metadata.read(marked.read_bytes())
    assert found.source_type == statement.source_type.uri
    assert (found.software, found.request_id) == (statement.software, statement.request_id)
    assert bool(found.aigc) == bool(statement.producer)
    assert found.packets == (provenance.packet(statement),)
    assert packets(marked) == packets(bare)
    for frame in av.open(str(marked)).decode(video=0):
        assert frame.width == 96


@pytest.mark.parametrize("kind", SUFFIX)
def test_the_label_of_chinas_standard_is_a_tag_of_the_file_as_well(kind, joined):
    with av.open(str(joined(kind, SWAP))) as file:
        assert file.metadata["AIGC"] == metadata.tags(kind, SWAP)["AIGC"]
    assert "AIGC" not in metadata.tags(kind, PLAIN)


@pytest.mark.parametrize("kind", SUFFIX)
def test_a_label_without_xmp_is_read_and_becomes_an_ingredient(kind, joined, folder):
    label = '{"Label":"2","ContentProducer":"x"}'
    path = folder / f"labelled.{SUFFIX[kind]}"
    with (
        av.open(str(joined(kind, None, "bare"))) as old,
        av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as new,
    ):
        new.metadata["AIGC"] = label
        streams = [new.add_stream_from_template(each) for each in old.streams]
        for packet in old.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream_index]
                new.mux(packet)
    assert metadata.read(path).aigc == {"Label": "2", "ContentProducer": "x"}
    marked = joined(kind, replace(PLAIN, ingredients=metadata.ingredients_of(path)))
    assert metadata.read(marked).ingredients[0].aigc == {"Label": "2", "ContentProducer": "x"}
    assert metadata.read(marked).aigc is None


@pytest.fixture
def movie_file(joined, tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(joined(FileKind.MP4, None, "bare").read_bytes())
    return path


def test_marking_a_file_again_replaces_and_twice_is_once(movie_file):
    bare = movie_file.read_bytes()
    metadata.mark_file(movie_file, SWAP)
    once = movie_file.read_bytes()
    assert once.startswith(bare)
    metadata.mark_file(movie_file, SWAP)
    assert movie_file.read_bytes() == once
    metadata.mark_file(movie_file, PLAIN)
    assert metadata.read(movie_file).packets == (provenance.packet(PLAIN),)


def test_a_packet_of_somebody_else_in_the_middle_is_gone_and_nothing_moves(movie_file):
    data, before = movie_file.read_bytes(), packets(movie_file)
    foreign = box(b"uuid", XMP + FOREIGN)
    movie_file.write_bytes(data + foreign + box(b"free", b""))
    assert metadata.read(movie_file).source_type == GENERATED
    metadata.mark_file(movie_file, PLAIN)
    assert metadata.read(movie_file).packets == (provenance.packet(PLAIN),)
    assert not [word for word in PRIVATE if word in movie_file.read_bytes()]
    assert packets(movie_file) == before


def test_a_crash_while_a_packet_is_written_leaves_a_file_that_plays_and_can_be_marked(
    movie_file, monkeypatch
):
    before, size = packets(movie_file), movie_file.stat().st_size
    metadata.mark_file(movie_file, SWAP)
    whole = movie_file.read_bytes()
    metadata.mark_file(movie_file, PLAIN)
    states, fsync = [], os.fsync

    def synced(number):
        fsync(number)
        states.append(movie_file.read_bytes())

    monkeypatch.setattr(movie.os, "fsync", synced)
    metadata.mark_file(movie_file, SWAP)
    monkeypatch.undo()
    states.append(states[1][: size + 100])
    assert len({*states}) == 4
    for state in states:
        movie_file.write_bytes(state)
        assert packets(movie_file) == before
        assert metadata.read(movie_file).request_id in {"", SWAP.request_id}
        metadata.mark_file(movie_file, SWAP)
        assert movie_file.read_bytes() == whole


def test_a_last_box_that_is_open_is_closed_before_something_follows(movie_file):
    data, before = movie_file.read_bytes(), packets(movie_file)
    (moov,), (mdat,) = (at_top(data, kind) for kind in (b"moov", b"mdat"))
    assert moov.end < mdat.start
    assert mdat.end == len(data)
    movie_file.write_bytes(data[: mdat.start] + bytes(4) + data[mdat.start + 4 :])
    metadata.mark_file(movie_file, PLAIN)
    assert packets(movie_file) == before
    assert movie_file.read_bytes().startswith(data)
    assert metadata.read(movie_file).request_id == PLAIN.request_id


def test_quicktimes_own_place_for_xmp_is_read(movie_file):
    data = movie_file.read_bytes()
    (moov,) = at_top(data, b"moov")
    udta = box(b"udta", box(b"XMP_", FOREIGN))
    inside = box(b"moov", data[moov.content : moov.end] + udta)
    assert metadata.read(data[: moov.start] + inside + data[moov.end :]).source_type == GENERATED


def test_what_is_no_movie_or_is_cut_short_is_not_touched(joined, tmp_path, movie_file):
    path = tmp_path / "other"
    cut = movie_file.read_bytes()[:-10]
    for data in (joined(FileKind.WEBM, None).read_bytes(), b"", b"noise", cut):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r".+"):
            metadata.mark_file(path, PLAIN)
        assert path.read_bytes() == data


def test_a_manifest_in_a_video_is_seen(movie_file):
    data = movie_file.read_bytes()
    manifest = box(b"uuid", bytes.fromhex("d8fec3d61b0e483c92975828877ec481") + b"manifest")
    assert metadata.read(data + manifest).manifest
    assert not metadata.read(data).manifest


def test_of_a_long_file_only_the_heads_are_read(movie_file):
    """A file of 8 GiB, most of it a hole, in no time and without its size in memory."""
    data = movie_file.read_bytes()
    size = 8 << 30
    with movie_file.open("r+b") as file:
        file.seek(len(data))
        file.write((1).to_bytes(4, "big") + b"mdat" + size.to_bytes(8, "big"))
        file.truncate(len(data) + size)
    metadata.mark_file(movie_file, PLAIN)
    assert movie_file.stat().st_blocks * 512 < 1 << 22
    assert metadata.read(movie_file).request_id == PLAIN.request_id


def test_matroska_of_unknown_sizes_is_read(folder, joined):
    """As it is written into a pipe: nobody has gone back to write sizes."""
    kept = bytearray()

    class Pipe:
        def write(self, data):
            kept.extend(data)
            return len(data)

    with (
        av.open(str(joined(FileKind.MKV, None, "bare"))) as old,
        av.open(Pipe(), "w", format="matroska") as new,
    ):
        new.metadata.update(metadata.tags(FileKind.MKV, SWAP))
        streams = [new.add_stream_from_template(each) for each in old.streams]
        for packet in old.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream_index]
                new.mux(packet)
    assert b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff" in kept
    assert metadata.read(bytes(kept)).request_id == SWAP.request_id


@pytest.mark.parametrize("kind", SUFFIX)
def test_a_video_cut_anywhere_says_what_it_said_or_nothing(kind, whole):
    data = whole[kind]
    for end in {*range(0, min(len(data), 3000), 3), *range(max(0, len(data) - 1500), len(data), 3)}:
        assert metadata.read(data[:end]).request_id in {"", SWAP.request_id}


@pytest.mark.parametrize("kind", SUFFIX)
@given(changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_bytes_that_are_wrong_are_no_error(kind, whole, changes):
    data = bytearray(whole[kind])
    for at, value in changes:
        data[at % len(data)] = value
    metadata.read(bytes(data))
    metadata.ingredients_of(bytes(data))
    movie.carried(bytes(data))
