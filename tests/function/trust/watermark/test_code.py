"""What 48 bits become, and how much noise they survive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.trust.watermark import code

PAYLOADS = st.integers(0, 2**code.BITS - 1)


@settings(max_examples=30)
@given(PAYLOADS)
def test_every_payload_comes_back(payload: int):
    assert code.decode(code.encode(payload)) == payload


@settings(max_examples=30)
@given(PAYLOADS, st.integers(0, 2**32 - 1))
def test_free_bits_may_be_chosen_for_any_picture(payload: int, seed: int):
    said = np.random.default_rng(seed).normal(0, 1, code.CODED)
    assert code.decode(code.encode(payload, said)) == payload


def test_noise_as_loud_as_the_signs_is_survived():
    random = np.random.default_rng(1)
    payloads = [int(random.integers(2**code.BITS)) for _ in range(20)]
    noisy = [code.encode(each) + random.normal(0, 0.9, code.CODED) for each in payloads]
    assert [code.decode(each) for each in noisy] == payloads


def test_noise_alone_says_nothing():
    random = np.random.default_rng(2)
    noise = (random.normal(0, 1, code.CODED) for _ in range(50))
    assert [code.decode(each) for each in noise] == [None] * 50


def test_the_codeword_is_chosen_that_is_most_like_the_picture():
    random = np.random.default_rng(3)
    chosen, fixed = [], []
    for _ in range(20):
        payload, said = int(random.integers(2**code.BITS)), random.normal(0, 1, code.CODED)
        chosen.append(code.encode(payload, said) @ said / code.CODED)
        fixed.append(code.encode(payload) @ said / code.CODED)
    assert np.mean(fixed) == pytest.approx(0, abs=0.05)
    assert np.mean(chosen) > 0.2


def test_the_check_sum_is_the_published_one():
    """CRC-16/CCITT-FALSE of six zero bytes, by bit-wise division of the shifted polynomial."""
    value = 0xFFFF << 48
    for place in reversed(range(48)):
        if value >> place + 16 & 1:
            value ^= 0x11021 << place
    assert code.check_sum(0) == value & 0xFFFF != 0
