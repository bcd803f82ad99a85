"""Floors change and no pod is replaced; a new revision has the floor before it has traffic."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from keepalive.cluster.client import Resource
from keepalive.cluster.knative import Share, Start
from keepalive.cluster.lease import Lease, LeaseTaken
from keepalive.cluster.pin import ROLLOUT
from keepalive.cluster.target import EARLIER, HOLD, Target
from keepalive.prescaler import grant
from keepalive.prescaler.config import PrescalerConfig
from keepalive.prescaler.grant import Grant
from keepalive.prescaler.prescaler import Prescaler
from keepalive.prescaler.schedule_file import parse
from keepalive.prescaler.state import load
from tests.keepalive.prescaler.rounds import BATCH, NOON, SCHEDULE, SPELL, floor, killed, once
from tests.kube.knative import MIN_SCALE
from tests.kube.objects import LEASES, REVISIONS, SERVICES
from tests.kube.service import service

LEAD = timedelta(minutes=12)
CANARY = '[[pool]]\ntag = "canary"\nfloor = 2\n'


@pytest.fixture
def ember(kube):
    kube.create(SERVICES, "ember", service(min_scale=1))
    return kube


def deploy(kube, number, **more):
    given = service(image=f"ember:{number}", **{"min_scale": 1, **more})
    kube.patch(SERVICES, "ember", {"spec": given["spec"]})
    return f"ember-{number:05}"


def annotate(kube, name, **values):
    kube.patch(REVISIONS, name, {"metadata": {"annotations": values}})


def kept(kube):
    lease = kube.get(LEASES, "ember-prescale-ember")
    return load(lease["metadata"]["annotations"]["ember.dev/prescale"])


class TestPods:
    def test_a_day_of_floors_replaces_no_pod(self, connect, ember):
        """Up by a window, shared with a canary, handed on, given back, held and down again."""
        cluster = connect()
        once(cluster)
        traffic = [
            {"revisionName": "ember-00001", "percent": 75},
            {"latestRevision": True, "percent": 25, "tag": "canary"},
        ]
        deploy(ember, 2, traffic=traffic)
        once(cluster, minutes=1)
        once(cluster, schedule=SCHEDULE + CANARY, minutes=2)
        deploy(
            ember,
            3,
            traffic=[
                {"revisionName": "ember-00001", "percent": 0, "tag": "previous"},
                {"latestRevision": True, "percent": 100},
            ],
        )
        once(cluster, minutes=3)
        ember.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: "true"}}})
        once(cluster, minutes=4)
        ember.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: None}}})
        for minute in range(5, 60 * 8, 7):
            once(cluster, minutes=minute)
        floors = [floor(ember, f"ember-0000{number}") for number in (1, 2, 3)]
        assert floors == [0, 2, 1]
        assert len(ember.list("events")) > 5
        assert ember.knative.rolled == []

    def test_an_activation_scale_is_never_below_the_floor_and_comes_down_with_it(
        self, connect, ember
    ):
        """Knative refuses a floor above it."""
        deploy(ember, 2, activation_scale=2)
        scale = lambda: ember.get(REVISIONS, "ember-00002")["metadata"]["annotations"]  # noqa: E731
        once(connect())
        assert floor(ember, "ember-00002") == 4
        assert scale()["autoscaling.knative.dev/activation-scale"] == "4"
        for minute in range(60 * 6, 60 * 8, 7):
            once(connect(), minutes=minute)
        assert floor(ember, "ember-00002") == 1
        assert scale()["autoscaling.knative.dev/activation-scale"] == "2"

    def test_why_and_when_are_in_the_event_and_in_the_lease(self, connect, ember):
        once(connect())
        (event,) = ember.list("events")
        assert event["message"] == "Warm floor from 1 to 4: window 0 8 * * mon-fri"
        assert event["lastTimestamp"] == "2026-11-30T12:00:00Z"
        made = Grant(4, 1, None, NOON, NOON, "window 0 8 * * mon-fri")
        assert kept(ember).grants == {"ember-00001": made}


class TestOurs:
    def previous(self, kube):
        """A revision without traffic that a tag still reaches, so that its floor keeps pods."""
        traffic = [
            {"revisionName": "ember-00001", "percent": 0, "tag": "previous"},
            {"latestRevision": True, "percent": 100},
        ]
        deploy(kube, 2, traffic=traffic)

    def test_a_floor_from_here_is_given_back(self, connect, ember):
        cluster = connect()
        once(cluster)
        self.previous(ember)
        once(cluster, minutes=1)
        assert floor(ember) == 0

    @pytest.mark.parametrize("after", [1, 3, 9])
    def test_one_that_somebody_has_changed_since_is_theirs(self, connect, ember, after):
        cluster = connect()
        once(cluster)
        annotate(ember, "ember-00001", **{MIN_SCALE: str(after)})
        self.previous(ember)
        once(cluster, minutes=1)
        assert floor(ember) == after

    def test_one_of_a_template_is_the_deployers(self, connect, ember):
        self.previous(ember)
        once(connect())
        assert floor(ember) == 1

    def test_it_is_known_though_the_round_ended_in_between(self, connect, ember):
        """The process is killed after the change: nothing but the Lease tells the next one."""
        cluster = connect()
        killed(cluster)
        assert floor(ember) == 4
        self.previous(ember)
        once(cluster, minutes=2)
        assert floor(ember) == 0

    def test_one_that_was_meant_and_not_made_is_not_from_here(self, connect, ember):
        cluster = connect()

        def meanwhile(call):
            if call.verb == "patch":
                ember.before = lambda _: None
                annotate(ember, "ember-00001", **{MIN_SCALE: "9"})

        ember.before = meanwhile
        once(cluster)
        self.previous(ember)
        once(cluster, minutes=1)
        assert floor(ember) == 9

    def test_without_the_lease_nothing_is_changed(self, connect, ember):
        cluster = connect()
        slow = Lease.take(cluster, "ember-prescale-ember", "slow", SPELL, NOON - 2 * SPELL)
        Lease.take(cluster, "ember-prescale-ember", "other", SPELL, NOON)
        with pytest.raises(LeaseTaken, match="was lost"):
            Prescaler(cluster, PrescalerConfig(), parse(SCHEDULE)).once(NOON, slow)
        assert floor(ember) == 1

    def test_a_few_are_remembered(self):
        grants = {}
        for number in range(50):
            target = Target(Resource.REVISION, f"ember-{number:05}", "1", "u", 1)
            grants = grant.with_grant(
                grants, grant.FloorStep(target, 4, "x"), NOON + timedelta(minutes=number)
            )
        assert sorted(grants) == [f"ember-{number:05}" for number in range(30, 50)]

    def test_what_it_had_before_the_first_one_stays_known(self):
        def target(floor):
            return Target(Resource.REVISION, "ember-00001", "1", "u", floor)

        later = NOON + LEAD
        grants = grant.with_grant({}, grant.FloorStep(target(1), 4, "x"), NOON)
        grants = grant.with_grant(grants, grant.FloorStep(target(4), 6, "y"), later)
        assert grants["ember-00001"] == Grant(6, 1, 4, NOON, later, "y")
        again = grant.with_grant(
            grants, grant.FloorStep(target(4), 6, "y"), later
        )  # the change was refused
        assert again == grants


class TestHandingOn:
    @pytest.fixture
    def starting(self, ember, connect):
        """Four replicas serve; from now on pods take their time."""
        once(connect())
        ember.knative.starting = True
        ember.knative.moved.clear()
        return ember

    def test_without_it_traffic_moves_to_one_pod(self, ember, connect):
        """What is to be prevented: everybody's requests with the one pod that it starts with."""
        once(connect())
        deploy(ember, 2)
        assert ember.knative.moved[-1] == ("ember-00002", 1)

    def test_the_next_revision_has_the_floor_before_the_traffic(self, connect, starting):
        cluster, new = connect(), deploy(starting, 2)
        done = once(cluster, minutes=1)
        assert (done.name, floor(starting), floor(starting, new)) == ("ember-00001", 4, 4)
        for pods in (1, 2, 3):
            starting.knative.start("ember", new, pods)
            assert starting.knative.moved == []
        starting.knative.start("ember", new, 4)
        assert starting.knative.moved == [(new, 4)]
        assert once(cluster, minutes=2).name == new
        assert starting.knative.rolled == []
        told = [
            one["message"] for one in starting.list("events") if "00002" in one["metadata"]["name"]
        ]
        why = "before it gets traffic: 100% of the traffic, for which 4 replicas are wanted"
        assert told == [f"Warm floor from 1 to 4: {why}"]

    def test_it_has_as_much_of_it_as_of_the_traffic(self, connect, starting):
        traffic = [
            {"revisionName": "ember-00001", "percent": 60},
            {"latestRevision": True, "percent": 40},
        ]
        new = deploy(starting, 2, traffic=traffic)
        once(connect(), minutes=1)
        assert (floor(starting), floor(starting, new)) == (4, 2)

    def test_one_that_gets_no_traffic_is_left_alone(self, connect, starting):
        new = deploy(starting, 2, traffic=[{"revisionName": "ember-00001", "percent": 100}])
        once(connect(), minutes=1)
        assert floor(starting, new) == 1

    def test_one_that_has_more_of_its_own_keeps_it(self, connect, starting):
        new = deploy(starting, 2, min_scale=6)
        once(connect(), minutes=1)
        assert floor(starting, new) == 6

    def test_one_that_may_have_less_gets_that(self, connect, starting):
        new = deploy(starting, 2, max_scale=3)
        once(connect(), minutes=1)
        assert floor(starting, new) == 3

    def test_one_that_is_to_start_with_no_pod_is_left_alone(self, connect, starting):
        """With a single GPU it would wait for ever for what the old one holds."""
        starting.knative.zero_initial_scale = True
        new = deploy(starting, 2, min_scale=0, initial_scale=0)
        once(connect(), minutes=1)
        assert floor(starting, new) == 0

    def test_traffic_that_moves_to_a_ready_revision_finds_its_floor(self, connect, starting):
        """Blue and green: spec.traffic says it before Knative has done it."""
        cluster = connect()
        pinned = [{"revisionName": "ember-00001", "percent": 100}]
        new = deploy(starting, 2, traffic=pinned)
        starting.knative.become_ready("ember", new)
        key = next(key for key in starting.objects.kept if key[1:4:2] == ("services", "ember"))
        found = starting.get(SERVICES, "ember")
        found["spec"]["traffic"] = [{"revisionName": new, "percent": 100}]
        starting.objects.keep(key, found)
        once(cluster, minutes=1)
        assert (floor(starting), floor(starting, new)) == (4, 4)

    def test_a_rollout_that_is_under_way_keeps_the_floors_that_it_holds(self, connect, starting):
        """Its old revision, should the traffic go back, and its new one at each step."""
        starting.knative.starting = False
        cluster = connect()
        traffic = [
            {"revisionName": "ember-00001", "percent": 90},
            {"latestRevision": True, "percent": 10, "tag": "next"},
        ]
        new = deploy(starting, 2, min_scale=2, traffic=traffic)
        mark = {"metadata": {"annotations": {ROLLOUT: "{}"}}}
        starting.patch(SERVICES, "ember", mark)
        hours = 60 * 12
        done = once(cluster, minutes=hours)
        for minute in range(hours + 7, hours + 120, 7):
            done = once(cluster, minutes=minute)
        assert (floor(starting), floor(starting, new)) == (4, 2)
        assert done.decision.why.startswith("a rollout is under way; without it 3 (not needed for")
        starting.patch(SERVICES, "ember", {"metadata": {"annotations": {ROLLOUT: None}}})
        for minute in range(hours + 120, hours + 180, 7):
            once(cluster, minutes=minute)
        assert (floor(starting), floor(starting, new)) == (1, 1)

    def test_and_raises_them_all_the_same(self, connect, starting):
        starting.knative.starting = False
        starting.patch(SERVICES, "ember", {"metadata": {"annotations": {ROLLOUT: "{}"}}})
        once(connect(), schedule=SCHEDULE.replace("floor = 4", "floor = 6"), minutes=1)
        assert floor(starting) == 6

    def test_a_held_service_hands_nothing_on(self, connect, starting):
        starting.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: "true"}}})
        new = deploy(starting, 2)
        once(connect(), minutes=1)
        assert floor(starting, new) == 1

    def test_batch_gives_way_to_both(self, connect, starting):
        starting.knative.starting = False
        starting.create(SERVICES, "batch", service(min_scale=4))
        starting.knative.starting = True
        new = deploy(starting, 2)
        once(connect(), schedule=SCHEDULE + BATCH, minutes=1)
        assert (floor(starting, new), floor(starting, "batch-00001")) == (4, 0)

    def test_one_whose_nodes_are_still_to_come_has_it_when_they_are_there(self, connect, starting):
        """A node for a GPU takes minutes, for which Knative calls the revision not ready."""
        starting.knative.starting, starting.knative.room = False, 4
        cluster, new = connect(), deploy(starting, 2)
        starting.knative.starting = True
        once(cluster, minutes=1)
        assert floor(starting, new) == 4

    def test_one_that_starts_with_no_pod_but_has_a_floor_gets_it(self, connect, starting):
        """Knative waits for the larger of initial-scale and min-scale."""
        starting.knative.zero_initial_scale = True
        new = deploy(starting, 2, min_scale=1, initial_scale=0)
        once(connect(), minutes=1)
        assert floor(starting, new) == 4

    def test_one_that_fails_gives_it_back(self, connect, starting):
        cluster, new = connect(), deploy(starting, 2)
        once(cluster, minutes=1)
        starting.knative.become_ready("ember", new, failed="no such image")
        once(cluster, minutes=2)
        assert floor(starting, new) == 1
        once(cluster, minutes=3)
        assert floor(starting, new) == 1, "it is not tried again and again"

    def test_where_there_is_no_room_for_all_it_starts_with_what_has_come(self, connect, starting):
        """Else it would never be ready, and the update would be stuck."""
        cluster, new = connect(), deploy(starting, 2)
        once(cluster, minutes=1)
        starting.knative.start("ember", new, 2)
        once(cluster, minutes=5)
        assert floor(starting, new) == 4, "it is waited for"
        once(cluster, minutes=7)
        assert floor(starting, new) == 2
        starting.knative.start("ember", new, 2)
        assert starting.knative.moved == [(new, 2)]
        once(cluster, minutes=8)
        assert floor(starting, new) == 4, "it is the main one"

    def test_a_dry_run_says_it(self, connect, starting):
        new = deploy(starting, 2)
        prescaler = Prescaler(connect(), PrescalerConfig(), parse(SCHEDULE))
        done = prescaler.rehearse(NOON + timedelta(minutes=1))
        assert [(one.name, one.after) for one in done.changes] == [(new, 4)]
        assert floor(starting, new) == 1


class TestStepBeside:
    """The decision alone."""

    def share(self, floor=1, *, up=0, percent=100.0, **more):
        start = {"failed": False, "empty": False, "patience": timedelta(minutes=5), **more}
        target = Target(Resource.REVISION, "ember-00002", "1", "u", floor)
        return Share(target, percent, None, Start(up, **start))

    def made(self, floor=4, *, minutes=0, reduced=False):
        since = NOON - timedelta(minutes=minutes)
        return Grant(floor, 1, None, since, since, "x", reduced)

    @pytest.mark.parametrize(
        ("lead", "minutes", "floor"), [(12, 5, 4), (12, 5.1, 2), (3, 3, 4), (3, 3.1, 2), (60, 5, 4)]
    )
    def test_it_is_waited_for_as_long_as_a_start_takes_and_knative_waits(
        self, lead, minutes, floor
    ):
        share, made = self.share(4, up=2), self.made(minutes=minutes)
        found = grant.step_beside(share, 4, made, NOON, timedelta(minutes=lead))
        assert found.floor == floor

    def test_a_floor_that_falls_meanwhile_takes_nothing_from_it(self):
        assert grant.step_beside(self.share(4), 2, self.made(), NOON, LEAD).floor == 4

    def test_what_failed_and_got_nothing_from_here_is_left_alone(self):
        assert grant.step_beside(self.share(3, failed=True), 4, None, NOON, LEAD) is None

    def test_what_got_enough_gets_no_more_before_it_is_ready(self):
        share = self.share(2, up=2)
        assert grant.step_beside(share, 4, self.made(2, reduced=True), NOON, LEAD).floor == 2


class TestLeft:
    def test_an_earlier_versions_annotations_stay_and_are_told_once(self, connect, ember):
        annotate(ember, "ember-00001", **dict.fromkeys(EARLIER, "x"))
        ember.knative.rolled.clear()
        cluster = connect()
        (note,) = once(cluster).notes
        assert "has left ember.dev/floor-reason and ember.dev/floor-changed on the Rev" in note
        assert "Leave them" in note
        assert once(cluster, minutes=1).notes == ()
        assert ember.knative.rolled == []
        assert floor(ember) == 4

    def test_a_hold_on_a_revision_is_told_each_time_and_stops_nothing(self, connect, ember):
        annotate(ember, "ember-00001", **{HOLD: "release day"})
        ember.knative.rolled.clear()
        cluster = connect()
        for minute in range(2):
            (note,) = once(cluster, minutes=minute).notes
            assert "stops nothing: put it on the Service" in note
        assert (floor(ember), ember.knative.rolled) == (4, [])

    def test_a_lease_of_an_earlier_version_is_read(self, connect, ember):
        memory = {"peaks": [[int(NOON.timestamp()) - 60, 9]], "at": int(NOON.timestamp()) - 60}
        lease = {"metadata": {"annotations": {"ember.dev/prescale": json.dumps(memory)}}}
        ember.create(LEASES, "ember-prescale-ember", {**lease, "spec": {}})
        annotate(ember, "ember-00001", **{MIN_SCALE: "9"})
        assert once(connect()).decision.why.startswith("9 were needed within 30 min")
