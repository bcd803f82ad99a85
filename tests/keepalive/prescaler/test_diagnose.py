"""Too few, or ready but slow: what each looks like, and what is said about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keepalive.prescaler.diagnose import PoolState, diagnose
from keepalive.prescaler.pool import ModelLayer, NodeLayer

CALM = ModelLayer(ready=4, in_flight=4, p95_s=0.4)
GPUS = NodeLayer(gpus=4, busy=0.9, memory=0.7, drivers=1)


def found(model, node=None, objective_s=0.8):
    return diagnose(model, node, per_replica=3, objective_s=objective_s)


@pytest.mark.parametrize(
    ("model", "state"),
    [
        (None, PoolState.UNKNOWN),
        (CALM, PoolState.FINE),
        # late, and with as much in work as they are meant to have, or more
        (replace(CALM, p95_s=2.0, in_flight=12), PoolState.TOO_FEW),
        (replace(CALM, p95_s=2.0, in_flight=9.7), PoolState.TOO_FEW),
        (replace(CALM, p95_s=0.81, in_flight=30), PoolState.TOO_FEW),
        # late with little to do
        (replace(CALM, p95_s=2.0, in_flight=9.5), PoolState.SLOW),
        (replace(CALM, p95_s=2.0, in_flight=0), PoolState.SLOW),
        # busy and in time
        (replace(CALM, p95_s=0.8, in_flight=12), PoolState.FINE),
        (replace(CALM, p95_s=None, in_flight=12), PoolState.FINE),
        # not late yet, but a queue that grows
        (replace(CALM, in_flight=16, queued=4, slope=0.1), PoolState.TOO_FEW),
        (replace(CALM, in_flight=16, queued=3, slope=0.1), PoolState.FINE),
        (replace(CALM, in_flight=16, queued=4, slope=0.0), PoolState.FINE),
        (replace(CALM, in_flight=11, queued=4, slope=0.1), PoolState.FINE),
        # refused, so that neither the latency of the rest nor a queue tells
        (replace(CALM, in_flight=11, served_s=2.0, refused=3.0), PoolState.TOO_FEW),
        (replace(CALM, in_flight=2, served_s=2.0, refused=3.0), PoolState.FINE),
        # enough are on the way
        (replace(CALM, p95_s=2.0, in_flight=14, warming=2), PoolState.WARMING),
        (replace(CALM, p95_s=2.0, in_flight=15, warming=2), PoolState.TOO_FEW),
        # none at all
        (ModelLayer(ready=0), PoolState.FINE),
        (ModelLayer(ready=0, warming=1), PoolState.WARMING),
        (ModelLayer(ready=0, in_flight=1), PoolState.TOO_FEW),
        (ModelLayer(ready=0, queued=1), PoolState.TOO_FEW),
    ],
)
def test_a_state_follows_from_what_replicas_have_to_do(model, state):
    assert found(model).state is state


@pytest.mark.parametrize(
    ("sign", "said"), [({"failed": 0.25}, "25% of swaps fail"), ({"broken": 2}, "2 replicas have")]
)
def test_what_fails_is_said(sign, said):
    assert any(said in each for each in found(replace(CALM, **sign)).advice)


def test_without_an_objective_only_a_queue_tells():
    assert found(replace(CALM, p95_s=9.0, in_flight=12), objective_s=None).state is PoolState.FINE


def test_replicas_wait_for_something_else_than_their_gpus():
    late = replace(CALM, p95_s=2.0, in_flight=20)
    finding = found(late, replace(GPUS, busy=0.12))
    assert finding.state is PoolState.SLOW
    assert "12%" in finding.advice[0]
    assert "containerConcurrency" in finding.advice[0]
    assert found(late, GPUS).state is PoolState.TOO_FEW
    assert found(late, replace(GPUS, busy=None)).state is PoolState.TOO_FEW


def test_slowness_without_a_cause_says_that_more_replicas_would_not_help():
    finding = found(replace(CALM, p95_s=2.0, in_flight=3))
    assert finding.state is PoolState.SLOW
    assert "25% of the requests" in finding.advice[0]
    assert "more replicas would not help" in finding.advice[0]


@pytest.mark.parametrize(
    ("model", "node", "told"),
    [
        (CALM, replace(GPUS, memory=0.95), "GPU memory is 95% taken"),
        (CALM, replace(GPUS, drivers=2), "2 versions of the driver"),
        (CALM, replace(GPUS, faults=1), "1 GPUs have reported an error"),
        (replace(CALM, first_ratio=3.2), GPUS, "3.2 times the usual"),
        (replace(CALM, degraded=2), GPUS, "2 models run on something else"),
    ],
)
def test_each_layer_is_told_what_is_wrong_with_it(model, node, told):
    (advice,) = found(model, node).advice
    assert told in advice
    late = found(replace(model, p95_s=2.0, in_flight=3), node)
    assert late.state is PoolState.SLOW
    assert late.advice == (advice,)


def test_what_is_well_needs_no_advice():
    assert found(replace(CALM, first_ratio=1.05), GPUS).advice == ()
    assert found(CALM, NodeLayer(gpus=1)).advice == ()
