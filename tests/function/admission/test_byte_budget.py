"""Room for bodies: never more than there is, never lost, and never all for bulk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.admission.byte_budget import ByteBudget, OverBudgetError
from function.request_context import Lane


@given(st.lists(st.tuples(st.sampled_from(Lane), st.lists(st.integers(0, 60)))))
def test_room_is_never_overfilled_and_all_comes_back(bodies):
    room = ByteBudget(100, 50)
    held = 0
    at_hand = []
    for lane, pieces in bodies:
        at_hand.append(room.body(lane))
        for piece in pieces:
            try:
                at_hand[-1].take(piece)
            except OverBudgetError:
                assert held + piece > 100 or lane is Lane.BULK
            else:
                held += piece
            assert held <= 100
    for body in at_hand:
        body.release()
    for lane, size in ((Lane.INTERACTIVE, 100), (Lane.BULK, 50)):
        body = room.body(lane)
        body.take(size)
        body.release()


def test_bulk_leaves_half_of_the_room_to_the_others():
    room = ByteBudget(100, 10)
    bulk, standard = room.body(Lane.BULK), room.body(Lane.STANDARD)
    bulk.take(50)
    with pytest.raises(OverBudgetError):
        bulk.take(1)
    standard.take(50)
    with pytest.raises(OverBudgetError):
        standard.take(1)


@pytest.mark.parametrize("lane", Lane)
def test_one_body_has_room_however_little_there_is(lane):
    ByteBudget(10, 100).body(lane).take(100)
