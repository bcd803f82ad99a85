"""How large the frames of an AV1 stream can be, from its headers (AV1 specification, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

_SEQUENCE_HEADER, _FRAME_HEADER, _FRAME = 1, 3, 6
_SWITCH_FRAME = 3
_MOST_UNITS = 256
_SELECT = 2  # what a sequence leaves to its frames


def largest(stream: bytes) -> int:
    """Pixels of the largest frame that a decoder may make room for.

    A frame that has a size of its own counts with the largest that can be written down: decoders do
    not hold it to the size of its sequence.

    Args:
        stream: a sample: open bitstream units, one behind the other.

    Returns:
        The number; 0 when there is no header, without which no decoder begins.

    Raises:
        ValueError: there are far more units than in any photo.
    """
    most, sequence = 0, None
    at = units = 0
    while at < len(stream):
        if (units := units + 1) > _MOST_UNITS:
            raise ValueError("too many units")
        head, at = stream[at], at + 1
        at += head >> 2 & 1  # which layer it is of
        size = len(stream) - at
        if head & 2:
            size, at = _leb128(stream, at)
        bits = _Bits(stream[at : at + min(max(size, 0), 256)])  # more than any header needs
        kind = head >> 3 & 15
        if kind == _SEQUENCE_HEADER:
            sequence = _Sequence.read(bits)
            most = max(most, sequence.size)
        elif kind in {_FRAME_HEADER, _FRAME} and sequence and _has_own_size(bits, sequence):
            most = max(most, sequence.possible)
        at += size
    return most


class _Bits:
    """Reads numbers, the most significant bit first; behind the end are zeros."""

    def __init__(self, data: bytes) -> None:
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def __call__(self, count: int = 1) -> int:
        self._left -= count
        value = self._value >> self._left if self._left >= 0 else self._value << -self._left
        return value & (1 << count) - 1

    def skip_if(self, flag: int, count: int) -> None:
        """Pass over so many bits if a flag is set."""
        self(count * bool(flag))


@dataclass(frozen=True, slots=True)
class _Sequence:
    """What a sequence header says, as far as the sizes of frames depend on it.

    Attributes:
        size: pixels of a frame that has no size of its own.
        possible: pixels of the largest one that has.
        reduced: whether there is one frame, without a size of its own.
        time_bits: length of the time of a frame that is shown; 0 where there is none.
        id_bits: length of the number of a frame; 0 where there is none.
        screen, whole: whether tools for pictures of screens are used, and whole motion vectors.
    """

    size: int
    possible: int
    reduced: bool
    time_bits: int = 0
    id_bits: int = 0
    screen: int = _SELECT
    whole: int = _SELECT

    @classmethod
    def read(cls, bits: _Bits) -> _Sequence:
        bits(4)  # profile, and whether it is a still picture
        reduced = bool(bits())
        time_bits = 0
        if reduced:
            bits(5)
        else:
            time_bits = _operating_points(bits)
        wide, high = bits(4) + 1, bits(4) + 1
        size = (bits(wide) + 1) * (bits(high) + 1)
        if reduced:
            return cls(size, size, reduced)
        id_bits = bits(4) + 2 + bits(3) + 1 if bits() else 0
        bits(7)  # tools
        if bits():  # order hints
            bits(2)
        screen = _SELECT if bits() else bits()
        whole = (_SELECT if bits() else bits()) if screen else _SELECT
        return cls(size, 1 << wide + high, reduced, time_bits, id_bits, screen, whole)


def _operating_points(bits: _Bits) -> int:
    """Pass over times and operating points; how long the times of frames are."""
    delay_bits = time_bits = 0
    if bits():  # times
        bits(64)
        if equal := bits():
            _skip_uvlc(bits)
        if bits():  # a model of the decoder
            delay_bits = bits(5) + 1
            bits(37)
            time_bits = (bits(5) + 1) * (not equal)
    delays = bits()
    for _ in range(bits(5) + 1):
        bits(12)
        bits.skip_if(bits(5) > 7, 1)
        bits.skip_if(delay_bits and bits(), 2 * delay_bits + 1)
        bits.skip_if(delays and bits(), 4)
    return time_bits


def _has_own_size(bits: _Bits, sequence: _Sequence) -> bool:
    """Whether a frame header has a size."""
    if sequence.reduced or bits():  # or a frame is shown again
        return False
    kind, shown = bits(2), bits()
    if kind == _SWITCH_FRAME:
        return True
    bits(sequence.time_bits if shown else 1)
    bits.skip_if(not (kind == 0 and shown), 1)  # resilient to errors
    bits()
    screen = bits() if sequence.screen == _SELECT else sequence.screen
    bits.skip_if(screen and sequence.whole == _SELECT, 1)
    bits(sequence.id_bits)
    return bool(bits())


def _skip_uvlc(bits: _Bits) -> None:
    zeros = 0
    while zeros < 32 and not bits():
        zeros += 1
    bits(zeros)


def _leb128(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for n, byte in enumerate(data[at : at + 8]):
        value |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return value, at + n + 1
    return len(data), len(data)
