"""Edit lists: which parts of a track an MP4 or QuickTime file shows. Nothing else of it changes."""

from __future__ import annotations

import struct

_NEVER = -1  # the media time of an edit that shows nothing


def edited(data: bytes, *edits: tuple[float | None, float]) -> bytes:
    """A film that shows only parts of itself, as phones and lossless cutters leave it.

    Args:
        data: an MP4 or QuickTime file with `moov` at its end.
        edits: for each part its begin in the film and its length, in seconds; None for the begin of
            a pause.
    """
    (moov,) = _boxes(data, 0, len(data), b"moov")
    (header,) = _boxes(data, moov[0] + 8, moov[1], b"mvhd")
    scale = struct.unpack_from(">I", data, header[0] + 20)[0]
    made = b""
    for kind, begin, end in _all(data, moov[0] + 8, moov[1]):
        made += _track(data, begin, end, scale, edits) if kind == b"trak" else data[begin:end]
    box = struct.pack(">I4s", len(made) + 8, b"moov") + made
    return data[: moov[0]] + box + data[moov[1] :]


def _track(data: bytes, begin: int, end: int, scale: int, edits) -> bytes:
    (media,) = _boxes(data, begin + 8, end, b"mdia")
    (header,) = _boxes(data, media[0] + 8, media[1], b"mdhd")
    own = struct.unpack_from(">I", data, header[0] + 20)[0]
    first = 0  # where the track begins, which need not be at 0
    for edit in _boxes(data, begin + 8, end, b"edts"):
        (table,) = _boxes(data, edit[0] + 8, edit[1], b"elst")
        first = struct.unpack_from(">i", data, table[0] + 20)[0]
    rows = b"".join(
        struct.pack(
            ">IiHH",
            round(length * scale),
            _NEVER if at is None else first + round(at * own),
            1,
            0,
        )
        for at, length in edits
    )
    table = struct.pack(">I4sII", 16 + len(rows), b"elst", 0, len(edits)) + rows
    made = b""
    for kind, left, right in _all(data, begin + 8, end):
        if kind == b"mdia":
            made += struct.pack(">I4s", len(table) + 8, b"edts") + table
        if kind != b"edts":
            made += data[left:right]
    return struct.pack(">I4s", len(made) + 8, b"trak") + made


def _all(data: bytes, at: int, end: int):
    while at + 8 <= end:
        size = struct.unpack_from(">I", data, at)[0]
        yield data[at + 4 : at + 8], at, at + size
        at += size


def _boxes(data: bytes, at: int, end: int, kind: bytes) -> list[tuple[int, int]]:
    return [(left, right) for found, left, right in _all(data, at, end) if found == kind]
