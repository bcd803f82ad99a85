"""Metadata in every kind of photo and animation: written, read, written again, and never fatal."""

from __future__ import annotations

import io
import zlib
from dataclasses import replace

import av
import numpy as np
import pillow_heif
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from function.images import kinds
from function.images.encode import encode
from function.images.frames import frames
from function.images.picture import Picture
from function.images.webp_file import WebpFile
from function.trust.marking import metadata, provenance
from function.trust.marking.containers import gif, jpeg
from function.trust.marking.containers.boxes import box, boxes
from tests.function.images.make import noise, quarters
from tests.function.trust.marking.packets import FOREIGN, GENERATED, PLAIN, PRIVATE, SWAP

pillow_heif.register_heif_opener()


def saved(image, kind, **options):
    image.save(out := io.BytesIO(), kind, **options)
    return out.getvalue()


def opened(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def photo(kind, mode="RGB"):
    pixels = np.asarray(quarters())
    alpha = np.full(pixels.shape[:2], 200, np.uint8) if "A" in mode else None
    return encode(Picture(pixels, alpha, gray=mode == "L"), kind)


def animated_webp():
    file = WebpFile((48, 32), 3, 80)
    for seed in range(3):
        file.add(noise(48, 32, seed), 40)
    return file.finish()


def animated_gif(**options):
    first, *rest = [noise(48, 32, seed).quantize(64) for seed in range(3)]
    return saved(
        first, "GIF", save_all=True, append_images=rest, duration=[40, 50, 60], loop=2, **options
    )


FILES = {
    "jpeg": photo("jpeg"),
    "gray jpeg": photo("jpeg", "L"),
    "jpeg with exif": saved(quarters(), "JPEG", exif=Image.Exif().tobytes() + b"\0"),
    "png": photo("png"),
    "clear png": photo("png", "RGBA"),
    "webp": photo("webp"),
    "gray webp": photo("webp", "L"),
    "clear webp": photo("webp", "RGBA"),
    "webp without loss": saved(quarters(), "WEBP", lossless=True),
    "clear webp without loss": saved(quarters().convert("RGBA"), "WEBP", lossless=True, exact=True),
    "animated webp": animated_webp(),
    "avif": photo("avif"),
    "clear avif": photo("avif", "RGBA"),
    "gray avif": photo("avif", "L"),
    "heic": saved(noise(), "HEIF"),
    "gif": saved(quarters().quantize(8), "GIF"),
    "animated gif": animated_gif(),
}
MARKED = {name: metadata.mark(data, SWAP) for name, data in FILES.items()}


def png_with(text, *, packed):
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", text.decode(), zip=packed)
    return saved(quarters(), "PNG", pnginfo=info)


def gif_in_parts(packet):
    """As some write it: the packet in parts, as all other extensions are."""
    parts = [packet[at : at + 255] for at in range(0, len(packet), 255)]
    parts = b"".join(bytes([len(part)]) + part for part in parts)
    data = FILES["gif"]
    at = data.index(b"!\xf9") if b"!\xf9" in data else data.index(b",")
    return data[:at] + b"!\xff\x0bXMP DataXMP" + parts + b"\0" + data[at:]


WITH_XMP = {
    "jpeg": saved(quarters(), "JPEG", xmp=FOREIGN),
    "png": png_with(FOREIGN, packed=False),
    "packed png": png_with(FOREIGN, packed=True),
    "webp": saved(quarters(), "WEBP", xmp=FOREIGN),
    "avif": saved(quarters(), "AVIF", xmp=FOREIGN),
    "heic": saved(noise(), "HEIF", xmp=FOREIGN),
    "tiff": saved(quarters(), "TIFF", tiffinfo={700: FOREIGN}),
    "big tiff": saved(quarters(), "TIFF", tiffinfo={700: FOREIGN}, big_tiff=True),
    "gif": gif.put(animated_gif(), FOREIGN),
    "gif in parts": gif_in_parts(FOREIGN),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_is_read(name):
    found = metadata.read(MARKED[name])
    assert found.source_type == SWAP.source_type.uri
    assert (found.software, found.request_id) == (SWAP.software, SWAP.request_id)
    assert found.aigc["ContentProducer"] == SWAP.producer.name
    assert found.packets == (provenance.packet(SWAP),)
    assert not found.manifest
    assert metadata.read(FILES[name]) == metadata.FoundMetadata()


@pytest.mark.parametrize("name", FILES)
def test_every_frame_has_the_pixels_that_it_had(name):
    before, after = opened(FILES[name]), opened(MARKED[name])
    assert (before.mode, before.size) == (after.mode, after.size)
    for key in ("icc_profile", "loop"):
        assert before.info.get(key) == after.info.get(key)
    assert getattr(before, "n_frames", 1) == getattr(after, "n_frames", 1)
    for number in range(getattr(before, "n_frames", 1)):
        before.seek(number)
        after.seek(number)
        assert before.info.get("duration") == after.info.get("duration")
        assert np.array_equal(np.asarray(before), np.asarray(after))


@pytest.mark.parametrize("name", ["jpeg", "png", "webp", "avif", "gif", "animated gif"])
def test_another_decoder_sees_the_same(name):
    def seen(data):
        with av.open(io.BytesIO(data)) as file:
            return [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]

    before, after = seen(FILES[name]), seen(MARKED[name])
    assert len(before) == len(after) > 0
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


@pytest.mark.parametrize("name", [name for name in FILES if "gif" not in name])
def test_pillow_finds_the_packet_where_it_looks_for_it(name):
    info = opened(MARKED[name]).info
    assert info.get("xmp", info.get("XML:com.adobe.xmp")) in {
        provenance.packet(SWAP),
        provenance.packet(SWAP).decode(),
    }


@pytest.mark.parametrize("name", FILES)
def test_marking_again_replaces_and_twice_is_once(name):
    assert metadata.mark(FILES[name], SWAP) == MARKED[name]
    assert metadata.mark(MARKED[name], SWAP) == MARKED[name]
    other = metadata.mark(MARKED[name], PLAIN)
    assert other == metadata.mark(FILES[name], PLAIN)
    assert metadata.read(other).aigc is None


def test_a_gif_has_the_frames_and_the_kind_that_it_had():
    for name in ("gif", "animated gif"):
        assert frames(MARKED[name]) == frames(FILES[name])
        assert kinds.animation(MARKED[name]) == kinds.animation(FILES[name])


def test_an_old_gif_becomes_one_that_may_have_extensions():
    old = b"GIF87a" + saved(quarters().quantize(8), "GIF")[6:]
    assert metadata.mark(old, PLAIN).startswith(b"GIF89a")


@pytest.mark.parametrize("name", WITH_XMP)
def test_what_others_have_written_is_read(name):
    found = metadata.read(WITH_XMP[name])
    assert (found.source_type, found.software) == (GENERATED, "Painter 3")
    assert found.aigc == {"Label": "1", "ProduceID": "x"}


@pytest.mark.parametrize("name", WITH_XMP)
def test_an_input_becomes_an_ingredient_without_what_is_private(name, tmp_path):
    (tmp_path / "input").write_bytes(WITH_XMP[name])
    kept = metadata.ingredients_of(tmp_path / "input")
    assert kept == metadata.ingredients_of(WITH_XMP[name])
    marked = metadata.mark(FILES["jpeg"], replace(PLAIN, ingredients=kept))
    assert metadata.read(marked).ingredients[0].source_type == GENERATED
    assert not [word for word in PRIVATE if word in marked]


@pytest.mark.parametrize("name", [name for name in WITH_XMP if "tiff" not in name])
def test_marking_leaves_nothing_of_the_packet_that_was_there(name):
    marked = metadata.mark(WITH_XMP[name], PLAIN)
    assert metadata.read(marked).packets == (provenance.packet(PLAIN),)
    assert not [word for word in PRIVATE if word in marked]
    assert np.array_equal(np.asarray(opened(marked)), np.asarray(opened(WITH_XMP[name])))
    assert metadata.mark(marked, PLAIN) == marked


def test_the_parts_of_a_long_packet_go_with_it():
    more = b"http://ns.adobe.com/xmp/extension/\0" + b"GPSLatitude"
    segment = b"\xff\xe1" + (len(more) + 2).to_bytes(2, "big") + more
    data = WITH_XMP["jpeg"]
    marked = metadata.mark(data[:2] + segment + data[2:], PLAIN)
    assert b"GPSLatitude" not in marked


def test_a_packet_that_no_segment_holds_is_refused():
    with pytest.raises(ValueError, match="fit"):
        jpeg.put(FILES["jpeg"], bytes(65_503))
    assert len(jpeg.carried(jpeg.put(FILES["jpeg"], b"x" * 65_502)).packets[0]) == 65_502


def png_chunk(kind, content):
    check = zlib.crc32(kind + content).to_bytes(4, "big")
    return len(content).to_bytes(4, "big") + kind + content + check


JUMBF = box(b"jumb", box(b"jumd", bytes(17) + b"c2pa\0"))
C2PA = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")


def riff_with(chunk):
    data = FILES["webp"] + chunk
    return data[:4] + (len(data) - 8).to_bytes(4, "little") + data[8:]


WITH_MANIFEST = {
    "jpeg": FILES["jpeg"][:2]
    + b"\xff\xeb"
    + (10 + len(JUMBF)).to_bytes(2, "big")
    + b"JP\0\1\0\0\0\1"
    + JUMBF
    + FILES["jpeg"][2:],
    "png": FILES["png"][:33] + png_chunk(b"caBX", JUMBF) + FILES["png"][33:],
    "webp": riff_with(b"C2PA" + len(JUMBF).to_bytes(4, "little") + JUMBF + bytes(len(JUMBF) % 2)),
    "gif": FILES["gif"][:-1] + b"!\xff\x0bC2PA_GIF\1\0\0" + bytes([40]) + bytes(41) + b";",
    "avif": FILES["avif"] + box(b"uuid", C2PA + b"manifest"),
    "tiff": saved(quarters(), "TIFF", tiffinfo={52545: JUMBF}),
}


@pytest.mark.parametrize("name", WITH_MANIFEST)
def test_a_manifest_is_seen_without_its_library(name):
    found = metadata.read(WITH_MANIFEST[name])
    assert found.manifest
    assert found.packets == ()
    assert b"self#jumbf=/c2pa" in metadata.ingredients_of(WITH_MANIFEST[name])[0]


SMALL = {
    name: metadata.mark(data, PLAIN)
    for name, data in {
        "jpeg": saved(Image.new("L", (8, 8)), "JPEG"),
        "png": saved(Image.new("L", (8, 8)), "PNG"),
        "webp": saved(Image.new("RGB", (8, 8)), "WEBP"),
        "gif": saved(Image.new("L", (8, 8)), "GIF"),
        "avif": saved(Image.new("RGB", (8, 8)), "AVIF"),
    }.items()
} | {"tiff": saved(Image.new("L", (8, 8)), "TIFF", tiffinfo={700: provenance.packet(PLAIN)})}


def tried(data):
    """Everything that can be done with a file."""
    found = metadata.read(data)
    metadata.ingredients_of(data)
    try:
        marked = metadata.mark(data, SWAP)
    except ValueError:
        return found
    metadata.read(marked)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_a_file_cut_anywhere_says_what_it_said_or_nothing(name):
    whole = metadata.read(SMALL[name])
    for end in range(len(SMALL[name])):
        found = tried(SMALL[name][:end])
        assert found.request_id in {"", whole.request_id}


@pytest.mark.parametrize("name", SMALL)
@given(changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_bytes_that_are_wrong_are_no_error(name, changes):
    data = bytearray(SMALL[name])
    for at, value in changes:
        data[at % len(data)] = value
    tried(bytes(data))


@pytest.mark.parametrize("name", SMALL)
@given(rest=st.binary(max_size=400), keep=st.integers(2, 40))
@settings(max_examples=40, deadline=None)
def test_noise_after_a_true_beginning_is_no_error(name, rest, keep):
    tried(SMALL[name][:keep] + rest)


def test_a_picture_whose_number_is_too_large_is_refused():
    data = FILES["avif"]
    at = data.index(b"pitm") + 4
    number = b"\1\0\0\0" + b"\xff" * 4
    inside = bytearray(data[:at] + number + data[at + 6 :])  # longer, and so is what holds it
    for kind in (b"pitm", b"meta"):
        place = inside.index(kind) - 4
        size = int.from_bytes(inside[place : place + 4], "big") + 2
        inside[place : place + 4] = size.to_bytes(4, "big")
    with pytest.raises(ValueError, match="too many"):
        metadata.mark(bytes(inside), PLAIN)


def test_a_picture_whose_last_box_is_open_is_refused():
    data = FILES["avif"]
    at = [each for each in boxes(data) if each.kind == b"mdat"][-1].start
    with pytest.raises(ValueError, match="open"):
        metadata.mark(data[:at] + bytes(4) + data[at + 4 :], PLAIN)


@pytest.mark.parametrize("name", ["png", "gif"])
def test_a_file_that_ends_before_a_packet_could_follow_is_refused(name):
    with pytest.raises(ValueError, match="cut short"):
        metadata.mark(FILES[name][:12], PLAIN)


def test_files_of_other_kinds_say_nothing_and_cannot_be_marked(tmp_path):
    (tmp_path / "empty").touch()
    for data in (b"", b"%PDF-1.7", b"BM" + bytes(40), bytes(100), tmp_path / "empty"):
        assert metadata.read(data) == metadata.FoundMetadata()
        assert metadata.ingredients_of(data) == ()
    for data in (b"", b"%PDF-1.7", WITH_XMP["tiff"], FILES["avif"][:200]):
        with pytest.raises(ValueError, match=r".+"):
            metadata.mark(data, PLAIN)


def test_many_packets_are_not_all_read():
    packet = provenance.packet(PLAIN)
    data = FILES["png"][:33] + png_chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + packet) * 500
    assert len(metadata.read(data).packets) == 8


def test_a_packed_packet_that_grows_without_end_is_not_read():
    packed = zlib.compress(bytes(50 << 20))
    chunk = png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1" + bytes(3) + packed)
    assert metadata.read(FILES["png"][:33] + chunk).packets == ()


def test_items_that_overlap_are_read_up_to_a_limit():
    """An AVIF whose list has one megabyte four thousand times."""
    count, size = 4000, 1 << 20
    entry = bytes([2, 0, 0, 0])
    infe = b"".join(
        box(b"infe", entry + number.to_bytes(2, "big") + b"\0\0mime\0application/rdf+xml\0")
        for number in range(count)
    )
    iinf = box(b"iinf", bytes(4) + count.to_bytes(2, "big") + infe)
    place = (0).to_bytes(4, "big") + size.to_bytes(4, "big")
    iloc = b"".join(number.to_bytes(2, "big") + b"\0\0\0\1" + place for number in range(count))
    iloc = box(b"iloc", bytes(4) + b"\x44\0" + count.to_bytes(2, "big") + iloc)
    head = box(b"ftyp", b"avif" + bytes(4) + b"avif")
    data = head + box(b"meta", bytes(4) + iinf + iloc) + box(b"mdat", b"x" * size)
    assert len(metadata.read(data).packets) == 8
