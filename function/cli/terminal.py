"""A picture inside a terminal, where the terminal says that it can show one.

Two ways are known: kitty's graphics protocol (sw.kovidgoyal.net/kitty/graphics-protocol) and DEC's
sixels (VT330/VT340 Programmer Reference Manual, volume 2, chapter 14).
"""

from __future__ import annotations

import io
import os
import re
import select
import sys
from base64 import b64encode
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_ESCAPE, _END = b"\x1b", b"\x1b\\"
_QUESTION = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\" + b"\x1b[c"
"""Whether one pixel could be shown by kitty's protocol, and then what every terminal answers: its
attributes (DA1), so that the answer has an end in any case."""
_ATTRIBUTES = re.compile(rb"\x1b\[\?([0-9;]*)c")
_SIXEL_ATTRIBUTE = b"4"
_PATIENCE_S = 1.0
_CHUNK = 4096  # bytes of base64 that one escape of kitty's may have
_COLOURS = 256
_FIRST = 63  # the character of a sixel without dots


class Graphics(Enum):
    """How a terminal shows pictures."""

    KITTY = "kitty"
    SIXEL = "sixel"


def graphics() -> Graphics | None:
    """How the terminal that this process writes to shows pictures; None where it does not say.

    It is asked by escapes that terminals without pictures pass over, and answers at once; a
    terminal that answers nothing is waited for a second.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    try:
        import termios
        import tty
    except ImportError:  # on Windows
        return None
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)  # nobody sees the answer
        os.write(sys.stdout.fileno(), _QUESTION)
        return understood(_answer(terminal))
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def understood(answer: bytes) -> Graphics | None:
    """What the answer to the question means."""
    if b"\x1b_Gi=31;OK" in answer:
        return Graphics.KITTY
    attributes = _ATTRIBUTES.search(answer)
    if attributes and _SIXEL_ATTRIBUTE in attributes[1].split(b";"):
        return Graphics.SIXEL
    return None


def escapes(pixels: NDArray[np.uint8], way: Graphics) -> bytes:
    """What makes the terminal show a picture at the cursor.

    Args:
        pixels: uint8 [H, W, 3], RGB.
        way: which the terminal understands.
    """
    return _kitty(pixels) if way is Graphics.KITTY else _sixel(pixels)


def _answer(terminal: int) -> bytes:
    answer = b""
    while not _ATTRIBUTES.search(answer):
        if not select.select([terminal], [], [], _PATIENCE_S)[0]:
            break
        answer += os.read(terminal, 1024)
    return answer


def _kitty(pixels: NDArray[np.uint8]) -> bytes:
    """The picture as a PNG, in chunks: transmit and display (a=T), say nothing about it (q=2)."""
    png = io.BytesIO()
    Image.fromarray(pixels).save(png, "PNG")
    text = b64encode(png.getvalue())
    chunks = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    more = [b"m=1"] * (len(chunks) - 1) + [b"m=0"]
    first = b"a=T,f=100,q=2,"
    return b"".join(
        _ESCAPE + b"_G" + (b"" if at else first) + more[at] + b";" + chunk + _END
        for at, chunk in enumerate(chunks)
    )


def _sixel(pixels: NDArray[np.uint8]) -> bytes:
    """The picture in rows of six, each colour of a row by itself."""
    height, width, _ = pixels.shape
    reduced = Image.fromarray(pixels).quantize(_COLOURS)
    palette = np.reshape(reduced.getpalette() or [], (-1, 3))
    colours = np.pad(np.asarray(reduced), ((0, -height % 6), (0, 0)), mode="edge")
    named = b"".join(
        b"#%d;2;%d;%d;%d" % (number, *(round(int(part) * 100 / 255) for part in colour))
        for number, colour in enumerate(palette)
    )
    rows = b"-".join(b"$".join(_row(row)) for row in colours.reshape(-1, 6, width))
    return _ESCAPE + b'P0;1;q"1;1;%d;%d' % (width, height) + named + rows + _END


def _row(row: NDArray[np.uint8]) -> Iterator[bytes]:
    """Each colour of a row [6, W] of colour numbers: a character has six dots, the top one is 1."""
    bits = 1 << np.arange(6)[:, None]
    for colour in np.unique(row):
        dots = ((row == colour) * bits).sum(axis=0) + _FIRST
        yield b"#%d" % colour + b"".join(
            _repeated(dot, len(list(same))) for dot, same in groupby(dots.tolist())
        )


def _repeated(dot: int, times: int) -> bytes:
    return bytes([dot]) * times if times < 4 else b"!%d%c" % (times, dot)
