"""A ConfigMap that `kubectl apply` could not note in its annotation is refused."""

from __future__ import annotations

import pytest

from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine

NOTED = "kubectl.kubernetes.io/last-applied-configuration"
MOST = 262_144


def told(text, kind="ConfigMap", **metadata):
    found = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "ember-models-abc"} | metadata}
    found["data"] = {"models.toml": text}
    return examine([found], KnativeConfig()).findings


ROOM = MOST - len(
    NOTED + '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ember-models-abc"},'
    '"data":{"models.toml":""}}\n'
)


@pytest.mark.parametrize(
    ("text", "count"), [("a", ROOM), ("ü", ROOM // 2), ("<", ROOM // 6), ("\n", ROOM // 2)]
)
def test_as_large_as_it_may_be_and_no_larger(text, count):
    assert told(text * count) == ()
    (found,) = told(text * (count + 1))
    assert found.name == "ConfigMap ember-models-abc"
    assert "of 262144 that Kubernetes takes" in found.wrong[0]
    assert "smaller files for their golden checks" in found.wrong[0]


def test_annotations_that_it_has_count_twice():
    annotations = {"a": "b" * 1000}
    assert told("a" * (ROOM - 2100), annotations=annotations) == ()
    assert told("a" * (ROOM - 1900), annotations=annotations) != ()


def test_other_kinds_are_not_looked_at():
    assert told("a" * MOST, kind="Secret") == ()
