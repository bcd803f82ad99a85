"""The bytes of bodies: never more than there are, never lost, and never all for bulk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.admission.byte_budget import ByteBudget, OverBudgetError
from function.request_context import Lane


@given(st.lists(st.tuples(st.sampled_from(Lane), st.lists(st.integers(0, 60)))))
def test_the_budget_is_never_exceeded_and_all_of_it_comes_back(bodies):
    budget = ByteBudget(100, 50)
    held = 0
    at_hand = []
    for lane, pieces in bodies:
        at_hand.append(budget.body(lane))
        for piece in pieces:
            try:
                at_hand[-1].take(piece)
            except OverBudgetError:
                assert held + piece > 100 or lane is Lane.BULK
            else:
                held += piece
            assert held <= 100
    for body in at_hand:
        with body:
            pass
    for lane, size in ((Lane.INTERACTIVE, 100), (Lane.BULK, 50)):
        with budget.body(lane) as body:
            body.take(size)


def test_bulk_leaves_half_of_the_bytes_to_the_others():
    budget = ByteBudget(100, 10)
    bulk, standard = budget.body(Lane.BULK), budget.body(Lane.STANDARD)
    bulk.take(50)
    with pytest.raises(OverBudgetError):
        bulk.take(1)
    standard.take(50)
    with pytest.raises(OverBudgetError):
        standard.take(1)


@pytest.mark.parametrize("lane", Lane)
def test_one_body_has_room_however_small_the_budget(lane):
    ByteBudget(10, 100).body(lane).take(100)
