"""`ember doctor` complains of each one-change variant that a cluster refuses, of no good one."""

from __future__ import annotations

from collections import Counter

import pytest

from keepalive.doctor import webhook
from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from tests.keepalive.doctor import variants
from tests.keepalive.doctor.services import ALLOWING, FLAGS, RICH, rich, thirty
from tests.keepalive.doctor.variants import CLASSES, changed

CASES = list(variants.listed(RICH))
GOOD = dict(thirty())


def test_the_service_that_is_changed_is_good_itself():
    found = examine([rich()], ALLOWING)
    assert found.findings[0].wrong == ()
    assert found.missing == ()


def test_there_are_enough_of_each_class():
    count = Counter(title for title, *_ in CASES)
    assert set(count) == {*CLASSES, "another type"}
    assert min(count.values()) >= 10
    assert sum(count.values()) - count["another type"] >= 250
    assert len(GOOD) >= 30


@pytest.mark.parametrize(
    ("where", "value", "told"),
    [case[1:] for case in CASES],
    ids=[f"{title}: {where} {str(value)[:30]}" for title, where, value, _ in CASES],
)
def test_a_variant_is_refused_by_the_name_of_what_is_wrong(where, value, told):
    found = webhook.complaints(changed(RICH, where, value), ALLOWING)
    assert any(told in each for each in found), found
    assert len(found) <= 4, found


@pytest.mark.parametrize("title", GOOD)
def test_a_good_service_has_no_complaint(title):
    found = examine([GOOD[title]], ALLOWING)
    assert found.findings[0].wrong == ()
    assert found.findings[0].warned == ()
    assert found.missing == ()


def test_each_flag_that_the_rich_service_needs_is_missed():
    missing = {need.key for need in examine([rich()], KnativeConfig()).missing}
    unused = {
        "dnspolicy",
        "hostipc",
        "hostnetwork",
        "hostpid",
        "priorityclassname",
        "schedulername",
    }
    unused |= {"runtimeclassname", "shareprocessnamespace", "volumes-csi", "volumes-ephemeral"}
    unused |= {"persistent-volume-write"}
    by_default = {"kubernetes.podspec-volumes-emptydir"}
    assert missing == set(FLAGS) - {f"kubernetes.podspec-{name}" for name in unused} - by_default
