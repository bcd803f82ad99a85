"""From zero: how many replicas Knative's autoscaler starts for one request that meets none."""

from __future__ import annotations

import re

import pytest
import yaml

from keepalive.planning.kpa.replay import replay
from keepalive.planning.kpa.settings import read
from tests.knative import webhook
from tests.knative.manifests import ROOT
from tests.knative.overlay import built

_QUIET_S = 1500
"""Longer than the window, the grace and the retention together."""


@pytest.fixture(scope="module")
def component(tmp_path_factory):
    return built(tmp_path_factory.mktemp("zero"), ["scale-to-zero"])


@pytest.fixture(scope="module")
def two(component):
    """With the patch that the docs show for those who want two."""
    text = (ROOT / "docs" / "deploy.md").read_text()
    (shown,) = re.findall(r"```yaml\n# a patch of the Service, [^\n]+\n(.+?)```", text, re.DOTALL)
    (patch,) = yaml.safe_load(shown)
    *_, name = patch["path"].split("/")
    added = {name.replace("~1", "/"): patch["value"]}
    return component.changed(lambda made: made.annotations.update(added))


def most_replicas(made, *, requests, cold_start_s):
    """The most that are there while requests come out of the quiet and are held until answered."""
    known = [
        (name, value)
        for name, value in made.annotations.items()
        if name.startswith("autoscaling.knative.dev/") and not name.endswith("/class")
    ]
    settings = read(known, made.revision["containerConcurrency"])
    load = [(0, 0.0), (_QUIET_S, float(requests)), (_QUIET_S + cold_start_s + 1, 0.0)]
    rows = list(replay(load, settings, cold_start_s, _QUIET_S + cold_start_s + 60))
    before = [row.replicas for row in rows if row.t == _QUIET_S - 2]
    assert before == [0], "it was not at zero when the request came"
    return max(row.replicas for row in rows if row.t >= _QUIET_S)


@pytest.mark.parametrize("cold_start_s", [4, 20, 61, 300])
def test_one_request_starts_one_replica_however_long_that_takes(component, cold_start_s):
    assert most_replicas(component, requests=1, cold_start_s=cold_start_s) == 1


def test_as_many_as_a_replica_lets_in_at_three_quarters_start_one(component):
    assert most_replicas(component, requests=3, cold_start_s=20) == 1


def test_more_than_one_replica_aims_at_start_more(component):
    assert most_replicas(component, requests=4, cold_start_s=20) == 2


def test_those_who_want_two_get_two(two):
    assert [told for check in webhook.CHECKS for told in check(two)] == []
    assert most_replicas(two, requests=1, cold_start_s=20) == 2
