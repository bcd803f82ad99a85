"""48 bits as 288 signs that survive noise: a check sum, free bits, and a convolutional code.

The code has constraint length 9 and rate 1/3 with the generators 557, 663 and 711 (octal), which
have the largest free distance, 18 (Larsen 1973). It is tail-biting: the last eight bits are also
the state in which it begins, so no bits are spent on an end.

Every third bit is free: it says nothing, and whoever writes chooses it. Each message thus has 2^30
codewords, and the one is sent that is most like what the picture says already, so that less has to
be added to it (informed coding with such a trellis is by Miller, Doërr and Cox, 2004).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

BITS = 48
"""What one mark carries."""
_CHECK = 16
_FREE = 3
"""Each so manieth bit is free."""
_LENGTH = (BITS + _CHECK) * _FREE // (_FREE - 1)
_GENERATORS = (0o557, 0o663, 0o711)
CODED = _LENGTH * len(_GENERATORS)
"""How many signs are sent."""
_MEMORY = 8
_STATES = 1 << _MEMORY


def check_sum(payload: int) -> int:
    """CRC-16/CCITT-FALSE of the six bytes of a payload; that of 0 is not 0."""
    value = 0xFFFF
    for byte in payload.to_bytes(BITS // 8, "big"):
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value


def encode(payload: int, said: NDArray[np.floating] | None = None) -> Floats:
    """The signs that stand for 48 bits: float32 [288], each 1 or -1.

    Args:
        payload: the bits.
        said: float [288], what the picture says already; None for signs without a look at it.
    """
    trellis = _trellis()
    wanted = _bits(payload)
    branch = np.zeros((_LENGTH, 2 * _STATES), np.float32)
    if said is not None:
        branch = np.asarray(said, np.float32).reshape(_LENGTH, -1) @ trellis.signs
    # The last bits are the start as well, so free ones among them are settled.
    wanted[-_MEMORY:] = [max(bit, 0) for bit in wanted[-_MEMORY:]]
    start = int("".join(map(str, wanted[-_MEMORY:])), 2)
    score = np.full(_STATES, -np.inf, np.float32)
    score[start] = 0
    chosen = np.empty((_LENGTH, _STATES), np.uint8)
    for step, bit in enumerate(wanted):
        score, chosen[step] = _step(score, branch[step], trellis)
        if bit >= 0:
            score[1 - bit :: 2] = -np.inf
    windows, _ = _back(start, chosen, trellis)
    return np.ascontiguousarray(trellis.signs[:, windows].T.ravel())


def decode(soft: NDArray[np.floating]) -> int | None:
    """The likeliest 48 bits, if their check sum is right.

    Args:
        soft: float [288], each positive for 1 and negative for -1, and larger the surer it is.
    """
    trellis = _trellis()
    branch = np.asarray(soft, np.float32).reshape(_LENGTH, -1) @ trellis.signs
    score = np.zeros(_STATES, np.float32)
    # The state in which it began is where it ends. Going round again finds it: the first round
    # teaches the scores, and of the second what follows the first eight bits is kept.
    rounds = 2 * _LENGTH + 4 * _MEMORY
    chosen = np.empty((rounds, _STATES), np.uint8)
    for step in range(rounds):
        score, chosen[step] = _step(score, branch[step % _LENGTH], trellis)
        score -= score[0]
    windows, _ = _back(int(score.argmax()), chosen, trellis)
    bits = np.roll(windows[_LENGTH + _MEMORY :][:_LENGTH] & 1, _MEMORY)
    value = int("".join(map(str, bits[np.arange(_LENGTH) % _FREE != _FREE - 1])), 2)
    payload = value >> _CHECK
    return payload if value & 0xFFFF == check_sum(payload) else None


def _bits(payload: int) -> list[int]:
    """The bits that are sent, -1 for those that are free."""
    message = payload << _CHECK | check_sum(payload)
    bits = [message >> n & 1 for n in reversed(range(BITS + _CHECK))]
    each = _FREE - 1
    return [bit for n in range(0, len(bits), each) for bit in (*bits[n : n + each], -1)]


class _Trellis(NamedTuple):
    """Where each state comes from.

    Attributes:
        before: int [2, 256], the two states before a state.
        windows: int [2, 256], the nine bits of these two steps.
        signs: float32 [3, 512], what is sent in a step, by its nine bits.
    """

    before: NDArray[np.intp]
    windows: NDArray[np.intp]
    signs: Floats


@cache
def _trellis() -> _Trellis:
    states = np.arange(_STATES)
    before = np.stack([states >> 1, states >> 1 | _STATES >> 1])
    windows = before << 1 | states & 1
    signs = [
        [1 - 2 * ((window & each).bit_count() & 1) for window in range(2 * _STATES)]
        for each in _GENERATORS
    ]
    return _Trellis(before, windows, np.array(signs, np.float32))


def _step(score: Floats, branch: Floats, trellis: _Trellis) -> tuple[Floats, NDArray[np.bool_]]:
    """The best score of each state after a step, and from which of two states that comes."""
    first, second = score[trellis.before] + branch[trellis.windows]
    return np.maximum(first, second), second > first


def _back(state: int, chosen: NDArray[np.uint8], trellis: _Trellis) -> tuple[NDArray[np.intp], int]:
    """The nine bits of each step on the way to a state, and where the way began."""
    windows = np.empty(len(chosen), np.intp)
    for step in reversed(range(len(chosen))):
        came = int(trellis.before[chosen[step, state], state])
        windows[step] = came << 1 | state & 1
        state = came
    return windows, state
