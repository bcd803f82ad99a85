"""Which frames of a clip are looked at."""

from __future__ import annotations

import numpy as np

from function.trust.gate.shots import FrameSampler
from tests import scenes
from tests.scenes import PHOTOS, photo


def looked(frames, **options):
    sampler = FrameSampler(**options)
    return [n for n, frame in enumerate(frames) if sampler.wants(frame)]


def test_each_shot_is_looked_at_once():
    shots = [photo(PHOTOS[0]), photo(PHOTOS[1]), scenes.beach(np.random.default_rng(1))]
    noise = np.random.default_rng(2)
    frames = [
        np.clip(np.roll(shot, n, 1).astype(int) + noise.integers(-6, 7, shot.shape), 0, 255)
        for shot in shots
        for n in range(10)
    ]
    assert looked(frame.astype(np.uint8) for frame in frames) == [0, 10, 20]


def test_what_is_cut_in_for_one_frame_is_looked_at():
    calm, other = photo(PHOTOS[1]), scenes.shapes(np.random.default_rng(3))
    frames = [calm] * 8
    frames[5] = other
    assert looked(frames) == [0, 5, 6]


def test_a_long_shot_is_looked_at_again_and_again():
    assert looked([photo(PHOTOS[1])] * 25, longest=10) == [0, 10, 20]


def test_a_slow_change_is_no_way_around_it():
    one, other = (np.zeros((80, 80, 3)) + each for each in ((200, 30, 30), (30, 60, 220)))
    steps = np.linspace(0, 1, 60)
    frames = [(one * (1 - part) + other * part).astype(np.uint8) for part in steps]
    assert len(looked(frames)) > 2


def test_small_and_gray_frames_count():
    assert looked([np.zeros((1, 1, 3), np.uint8), np.full((2, 9, 3), 255, np.uint8)]) == [0, 1]
