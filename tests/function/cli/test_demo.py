"""`ember demo`, and pictures in terminals."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from function.cli.terminal import Graphics, escapes, understood


@pytest.mark.parametrize(
    ("answer", "way"),
    [
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c", Graphics.KITTY),
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?62;4;22c", Graphics.KITTY),
        (b"\x1b_Gi=31;ENOTSUPPORTED:no\x1b\\\x1b[?62;4c", Graphics.SIXEL),
        (b"\x1b[?62;4;9;22c", Graphics.SIXEL),
        (b"\x1b[?64;14;42c", None),
        (b"\x1b[?6c", None),
        (b"", None),
    ],
)
def test_a_terminal_says_what_it_can_show(answer, way):
    assert understood(answer) is way


@pytest.fixture(params=[(6, 10), (16, 21), (1, 1)])
def pixels(request):
    height, width = request.param
    blocks = np.random.default_rng(7).integers(0, 256, (height // 5 + 1, width // 5 + 1, 3))
    return blocks.repeat(5, 0).repeat(5, 1)[:height, :width].astype(np.uint8)


def test_kitty_gets_a_png_in_chunks(pixels):
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    for each in (pixels, noise):
        chunks = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", escapes(each, Graphics.KITTY))
        assert max(len(data) for _, data in chunks) <= 4096
        assert [b"m=1" in control for control, _ in chunks] == [True] * (len(chunks) - 1) + [False]
        png = base64.b64decode(b"".join(data for _, data in chunks))
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), each)
    assert len(chunks) > 1


def test_sixels_are_the_picture(pixels):
    shown = drawn(escapes(pixels, Graphics.SIXEL), pixels.shape)
    # Colours are told in percent.
    assert np.abs(shown.astype(int) - pixels).max() <= 2


def drawn(sixels, shape):
    """What a terminal makes of sixels, by DEC's manual."""
    head, _, body = sixels.partition(b"q")
    assert (head, body[-2:]) == (b"\x1bP0;1;", b"\x1b\\")
    canvas = np.zeros(shape, np.uint8)
    palette, colour, x, y = {}, None, 0, 0
    for token in re.findall(rb'"[0-9;]+|#[0-9;]+|![0-9]+.|[$-]|[?-~]', body[:-2]):
        kind, rest = token[:1], token[1:]
        if kind == b'"':
            assert rest.split(b";") == [b"1", b"1", b"%d" % shape[1], b"%d" % shape[0]]
        elif kind == b"#":
            number, *levels = map(int, rest.split(b";"))
            if levels:
                assert levels[0] == 2
                palette[number] = [round(level * 255 / 100) for level in levels[1:]]
            else:
                colour = palette[number]
        elif kind == b"$":
            x = 0
        elif kind == b"-":
            x, y = 0, y + 6
        else:
            times = int(rest[:-1]) if kind == b"!" else 1
            dots = token[-1] - 63
            for row in range(y, min(y + 6, shape[0])):
                if dots >> (row - y) & 1:
                    canvas[row, x : x + times] = colour
            x += times
    return canvas


def run(folder, **streams):
    words = [sys.executable, "-m", "function", "demo"]
    return subprocess.Popen(words, cwd=folder, **streams)


def test_without_a_terminal_it_says_where_the_photos_are(tmp_path):
    done = run(tmp_path, stdout=subprocess.PIPE)
    told = done.communicate(timeout=120)[0].decode()
    assert done.returncode == 0
    assert b"\x1b" not in told.encode()
    assert re.search(r"before: .*collins\.jpg$", told, re.MULTILINE)
    assert "after:  ember-demo.jpg: 1 face swapped" in told
    assert b"compositeCapture" in (tmp_path / "ember-demo.jpg").read_bytes()  # it says what it is


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (b"\x1b[?62;4c", b"\x1bP0;1;q"),
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?62c", b"\x1b_Ga=T"),
        (b"\x1b[?6c", b""),
    ],
)
def test_a_terminal_is_asked_and_shows_what_it_can(tmp_path, answer, shown):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = run(tmp_path, stdin=theirs, stdout=theirs)
    os.close(theirs)
    told = b""
    while True:
        try:
            told += os.read(ours, 1 << 16)
        except OSError:  # its end has been closed
            break
        if answer and told.endswith(b"\x1b[c"):
            os.write(ours, answer)
            answer = b""
    os.close(ours)
    assert process.wait(60) == 0
    assert told.count(b"\x1b[c") == 1
    assert shown in told
    assert (b"source, the target before" in told) == bool(shown)
    assert b"ember swap me.jpg" in told
