"""Phases take legal steps only."""

from __future__ import annotations

import itertools

import pytest

from warmup.phase import Phase

LIFE = [
    Phase.STARTING,
    Phase.FETCHING,
    Phase.LOADING,
    Phase.WARMING,
    Phase.READY,
    Phase.DRAINING,
]


def test_the_documented_life_is_legal():
    assert all(a.may_become(b) for a, b in itertools.pairwise(LIFE))


@pytest.mark.parametrize("end", [Phase.DRAINING, Phase.FAILED])
@pytest.mark.parametrize("later", Phase)
def test_draining_and_failed_absorb(end, later):
    assert not end.may_become(later)


@pytest.mark.parametrize("phase", [p for p in Phase if p not in (Phase.DRAINING, Phase.FAILED)])
def test_every_living_phase_may_drain_or_fail(phase):
    assert phase.may_become(Phase.DRAINING)
    assert phase.may_become(Phase.FAILED)


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.FETCHING, Phase.LOADING])
def test_nothing_is_ready_without_a_warm_up(phase):
    assert not phase.may_become(Phase.READY)


def test_a_warm_up_can_be_repeated():
    assert Phase.READY.may_become(Phase.WARMING)
