"""Which marks a picture gets."""

from __future__ import annotations

import pytest

from function.trust.watermark.policy import MarkPlan, WhichMarks, plan


@pytest.mark.parametrize(
    ("which", "sizes", "faces", "picture"),
    [
        (WhichMarks.OFF, [300], [False], False),
        (WhichMarks.FACES, [300, 192, 96, 95.9], [True, True, True, False], False),
        (WhichMarks.SMALL, [300, 192], [True, True], False),
        (WhichMarks.SMALL, [300, 191.9], [True, True], True),
        (WhichMarks.SMALL, [40], [False], True),
        (WhichMarks.ALWAYS, [300], [True], True),
        (WhichMarks.ALWAYS, [], [], False),
    ],
)
def test_the_plan_follows_the_sizes(which, sizes, faces, picture):
    assert plan(which, sizes) == MarkPlan(tuple(faces), picture)
