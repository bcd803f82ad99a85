"""Annotations on a Revision: those that it was born with, and those that restart its pods."""

from __future__ import annotations

import pytest

from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from tests.keepalive.doctor.services import NAMED
from tests.keepalive.doctor.test_advice import annotated
from tests.keepalive.doctor.test_doctor import service


def revision(annotations, written=()):
    """One that has been made with annotations, but for some that were written onto it later."""
    made = {**NAMED, "kind": "Revision"}
    made["metadata"] = {
        "name": "swap-00001",
        "labels": {"serving.knative.dev/service": "swap"},
        "annotations": annotations,
    }
    born = {"f:annotations": {f"f:{name}": {} for name in annotations if name not in written}}
    later = {"f:annotations": {".": {}, **{f"f:{name}": {} for name in written}}}
    made["metadata"]["managedFields"] = [
        {
            "manager": "controller",
            "fieldsV1": {"f:metadata": born, "f:spec": {"f:containers": {}}},
        },
        {"manager": "kubectl-annotate", "fieldsV1": {"f:metadata": later}},
    ]
    return made


@pytest.mark.parametrize("name", ["ember.dev/floor-reason", "ember.dev/hold", "team/note"])
def test_what_was_written_onto_one_is_wrong(name):
    one = revision({name: "x", "prometheus.io/scrape": "true"}, [name])
    (found,) = examine([one], KnativeConfig()).findings
    assert found.name == "Revision swap-00001"
    (told,) = found.wrong
    assert told.startswith(f"metadata.annotations: {name}, by kubectl-annotate: Knative copies")
    assert "change autoscaling.knative.dev/* only" in told


@pytest.mark.parametrize(
    "name",
    [
        *("autoscaling.knative.dev/min-scale", "serving.knative.dev/routes"),
        *("serving.knative.dev/lastPinned", "serving.knative.dev/no-gc"),
        "serving.knative.dev/routingStateModified",
    ],
)
def test_what_knative_does_not_copy_may_be_written(name):
    found = examine([revision({name: "x"}, [name])], KnativeConfig()).findings[0]
    assert (found.wrong, found.warned) == ((), ())


def test_what_it_was_born_with_is_well():
    one = revision({"ember.dev/team": "a", "prometheus.io/scrape": "true"})
    found = examine([one], KnativeConfig()).findings[0]
    assert (found.wrong, found.warned) == ((), ())


def test_without_a_word_of_who_wrote_it_ours_is_wrong_and_others_a_warning():
    given = {"ember.dev/floor-reason": "x", "team/note": "x", "prometheus.io/scrape": "true"}
    one = revision({**given, "serving.knative.dev/creator": "jo"})
    del one["metadata"]["managedFields"]
    of = service(annotated("prometheus.io/scrape", "true"))
    found = examine([one, of], KnativeConfig()).findings[1]
    assert ["ember.dev/floor-reason" in told for told in found.wrong] == [True]
    assert ["team/note" in told for told in found.warned] == [True]


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, [], {"annotations": []}, {"annotations": {3: "x"}}, {"managedFields": "x"}),
        *({"managedFields": [3]}, {"managedFields": [{"fieldsV1": 3}], "labels": {"a": 3}}),
    ],
)
def test_whatever_it_has_is_examined(metadata):
    one = {**NAMED, "kind": "Revision", "metadata": metadata}
    assert len(examine([one], KnativeConfig()).findings) == 1
