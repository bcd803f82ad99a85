"""Plans are kept and fetched like weights; what is not exactly what was asked for is not used."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.warmup.conftest import content_of
from tests.warmup.objects.gcs import fake_gcs
from tests.warmup.plans.test_plan_key import KEY, OTHERS
from warmup.failures import DamagedError, UnavailableError
from warmup.models.store import Store
from warmup.plans import stored as module
from warmup.plans.stored import Plans, described
from warmup.settings.variables import replace as changed

CONTENT = content_of(300_000)
SIDECAR = described(KEY, CONTENT, built_by="11.4.0.106", seconds=3)


@pytest.fixture
def shared(tmp_path):
    return tmp_path / "shared"


@pytest.fixture
def node(tmp_path, settings, shared):
    """The plans of a node with a store of its own."""

    def node(name="node", place=str(shared), **more):
        root = tmp_path / name
        return Plans(Store(root), changed(settings, store=root, fetch_stall_s=10, **more), place)

    return node


def content(plans, key=KEY):
    found = plans.find(key)
    if found is None:
        return None
    found[1].close()
    return found[1].file.path.read_bytes()


@pytest.fixture
def plans(node):
    plans = node()
    plans.keep(SIDECAR, CONTENT)
    return plans


def sidecar_of(plans, key=KEY):
    return plans.store.root / "plans" / f"{key.digest}.json"


def test_what_was_kept_is_found_and_proven(plans):
    assert content(plans) == CONTENT
    assert plans.find(KEY)[0] == SIDECAR
    assert list(plans.entries()) == [SIDECAR]


def test_keeping_it_twice_is_no_more_than_once(plans):
    plans.keep(SIDECAR, CONTENT)
    assert content(plans) == CONTENT
    assert [entry.sha256 for entry in plans.store.entries()] == [SIDECAR.sha256]


def test_what_is_held_is_not_removed(plans):
    _, held = plans.find(KEY)
    assert not plans.store.remove(SIDECAR.sha256)
    held.close()
    assert plans.store.remove(SIDECAR.sha256)
    assert plans.find(KEY) is None


@pytest.mark.parametrize("field", OTHERS)
def test_a_plan_that_differs_in_anything_is_not_found(plans, field):
    assert plans.find(replace(KEY, **{field: OTHERS[field]})) is None


@pytest.mark.parametrize("field", OTHERS)
def test_a_foreign_plan_under_our_name_is_not_used(plans, field):
    foreign = replace(SIDECAR, key=replace(KEY, **{field: OTHERS[field]}))
    sidecar_of(plans).write_text(foreign.text())
    assert plans.find(KEY) is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", "<html>"])
def test_a_damaged_sidecar_is_as_good_as_none(plans, text):
    sidecar_of(plans).write_text(text)
    assert plans.find(KEY) is None
    assert list(plans.entries()) == []
    plans.keep(SIDECAR, CONTENT)
    assert content(plans) == CONTENT


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: c[:-1] + b"x", lambda c: b""])
def test_a_damaged_plan_is_as_good_as_none(plans, damage):
    path = plans.store.path(SIDECAR.sha256)
    path.chmod(0o644)
    path.write_bytes(damage(CONTENT))
    assert plans.find(KEY) is None


def test_a_plan_of_one_node_serves_the_next(plans, node):
    where = plans.publish(KEY)
    assert where.endswith(f"/plans/{KEY.digest}")
    other = node("other")
    assert content(other) is None
    assert other.fetch(KEY)
    assert content(other) == CONTENT
    assert other.find(KEY)[0] == SIDECAR


def test_where_there_is_no_plan_nothing_is_fetched(node):
    plans = node()
    assert not plans.fetch(KEY)
    assert not node("alone", place=None).fetch(KEY)


def test_a_plan_that_is_here_is_not_fetched(plans, shared):
    assert not shared.exists()
    assert plans.fetch(KEY)


@pytest.mark.parametrize("field", OTHERS)
def test_a_foreign_plan_in_the_shared_place_is_refused_by_name(plans, node, shared, field):
    plans.publish(KEY)
    foreign = replace(SIDECAR, key=replace(KEY, **{field: OTHERS[field]}))
    (shared / "plans" / KEY.digest / "plan.json").write_text(foreign.text())
    with pytest.raises(DamagedError, match="describes another plan than its name says"):
        node("other").fetch(KEY)


def test_a_damaged_plan_in_the_shared_place_is_refused(plans, node, shared):
    plans.publish(KEY)
    (shared / "plans" / KEY.digest / "plan").write_bytes(CONTENT[:-1] + b"x")
    other = node("other")
    with pytest.raises(DamagedError, match="sha256"):
        other.fetch(KEY)
    assert content(other) is None


def test_a_plan_without_its_sidecar_is_not_there_yet(plans, node, shared):
    plans.publish(KEY)
    (shared / "plans" / KEY.digest / "plan.json").unlink()
    assert not node("other").fetch(KEY)


def test_nothing_is_published_without_a_place_or_a_plan(plans, node):
    with pytest.raises(UnavailableError, match="EMBER_PLANS"):
        Plans(plans.store, plans.settings).publish(KEY)
    with pytest.raises(UnavailableError, match="not in the store"):
        node("other").publish(KEY)


def test_several_nodes_that_publish_at_once_leave_one_whole_plan(node, shared):
    nodes = [node(f"node-{number}") for number in range(4)]
    for each in nodes:
        each.keep(SIDECAR, CONTENT)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.publish(KEY), nodes))
    assert sorted(path.name for path in (shared / "plans" / KEY.digest).iterdir()) == [
        "plan",
        "plan.json",
    ]
    assert node("other").fetch(KEY)


def test_a_bucket_does_the_same(plans, node):
    with fake_gcs("plans-bucket") as bucket:
        publisher = replace(plans, place="gs://plans-bucket/ember")
        assert publisher.publish(KEY) == f"gs://plans-bucket/ember/plans/{KEY.digest}"
        names = sorted(blob.name for blob in bucket.list_blobs())
        assert names == [f"ember/plans/{KEY.digest}/{name}" for name in ("plan", "plan.json")]
        other = node("other", place="gs://plans-bucket/ember")
        assert other.fetch(KEY)
        assert content(other) == CONTENT
        assert not node("third", place="gs://plans-bucket/ember").fetch(replace(KEY, sm="8.0"))
        offline = node("fourth", place="gs://plans-bucket/ember", offline=True)
        assert not offline.fetch(KEY)


def test_a_bucket_that_cannot_be_read_is_named(node):
    with fake_gcs("other-bucket"):
        plans = node(place="gs://none-such")
        assert not plans.fetch(KEY)  # a bucket that is not there has no plans
        plans.keep(SIDECAR, CONTENT)
        with pytest.raises(UnavailableError, match="gs://none-such/plans"):
            plans.publish(KEY)


def test_the_file_beside_a_plan_says_what_it_depends_on(plans):
    facts = json.loads(sidecar_of(plans).read_text())
    assert facts["key"]["gpu"] == "NVIDIA H100 80GB HBM3"
    assert set(facts) == {"format", "key", "size", "sha256", "built_by", "seconds", "speedup"}
    assert module.described(KEY, CONTENT, built_by="x", seconds=0).sha256 == facts["sha256"]
