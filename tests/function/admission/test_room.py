"""Room for bodies: never more than there is, never lost, and never all for bulk."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.admission.room import NoRoomError, Room
from function.turn import Lane


@given(st.lists(st.tuples(st.sampled_from(Lane), st.lists(st.integers(0, 60)))))
def test_room_is_never_overfilled_and_all_comes_back(bodies):
    room = Room(100, 50)
    held = 0
    with ExitStack() as stack:
        for lane, pieces in bodies:
            take = stack.enter_context(room.body(lane))
            for piece in pieces:
                try:
                    take(piece)
                except NoRoomError:
                    assert held + piece > 100 or lane is Lane.BULK
                else:
                    held += piece
                assert held <= 100
    with room.body(Lane.INTERACTIVE) as take:
        take(100)
    with room.body(Lane.BULK) as take:
        take(50)


def test_bulk_leaves_half_of_the_room_to_the_others():
    room = Room(100, 10)
    with room.body(Lane.BULK) as bulk, room.body(Lane.STANDARD) as standard:
        bulk(50)
        with pytest.raises(NoRoomError):
            bulk(1)
        standard(50)
        with pytest.raises(NoRoomError):
            standard(1)


@pytest.mark.parametrize("lane", Lane)
def test_one_body_has_room_however_little_there_is(lane):
    with Room(10, 100).body(lane) as take:
        take(100)
