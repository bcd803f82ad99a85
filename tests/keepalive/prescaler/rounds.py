"""What tests of rounds share: a schedule, a time, and a round under a Lease."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepalive.cluster.lease import Lease
from keepalive.prescaler.config import PrescalerConfig
from keepalive.prescaler.prescaler import Prescaler
from keepalive.prescaler.schedule_file import parse
from tests.kube.knative import MIN_SCALE
from tests.kube.objects import REVISIONS

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)  # a Monday
SPELL = timedelta(seconds=60)
SCHEDULE = """
timezone = "UTC"
floor = 1
max_floor = 20
[[window]]
start = "0 8 * * mon-fri"
hours = 10
floor = 4
"""
BATCH = '[batch]\nservice = "batch"\nfloor = 6\ngpus = 8\n'


def once(cluster, config=None, schedule=SCHEDULE, now=NOON, *, minutes=0):
    """A round of a process that has just started."""
    now += timedelta(minutes=minutes)
    prescaler = Prescaler(cluster, config or PrescalerConfig(), parse(schedule))
    return prescaler.once(now, Lease.take(cluster, prescaler.config.lease, "me", SPELL, now))


def killed(cluster, schedule=SCHEDULE, *, minutes=0):
    """A round whose process is killed when it has made its first change."""
    now = NOON + timedelta(minutes=minutes)
    prescaler = Prescaler(cluster, PrescalerConfig(), parse(schedule))
    lease = Lease.take(cluster, prescaler.config.lease, "me", SPELL, now)
    patch = type(cluster).patch

    def patched(*args, **more):
        patch(*args, **more)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(type(cluster), "patch", patched)
        with pytest.raises(KeyboardInterrupt):
            prescaler.once(now, lease)


def floor(kube, name="ember-00001"):
    return int(kube.get(REVISIONS, name)["metadata"]["annotations"].get(MIN_SCALE, 0))
