"""What is read and changed in a cluster, and how it fails."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta

import pytest

from keepalive.cluster import hpa, knative
from keepalive.cluster.client import Cluster, Conflict, Missing, Resource
from keepalive.cluster.lease import Lease, LeaseTaken, peek
from keepalive.cluster.target import EARLIER, HOLD, change
from keepalive.cluster.version import check_version
from keepalive.failure import Failure
from tests.kube.knative import MIN_SCALE
from tests.kube.objects import LEASES, REVISIONS, SCALERS, SERVICES, Key
from tests.kube.server import running
from tests.kube.service import service

AUTOSCALERS = "podautoscalers.autoscaling.internal.knative.dev"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def split(*parts):
    """Traffic: a revision or None for the latest, a percentage, and maybe a tag."""
    told = []
    for name, percent, *tag in parts:
        which = {"revisionName": name} if name else {"latestRevision": True}
        told.append({**which, "percent": percent, **({"tag": tag[0]} if tag else {})})
    return told


def release(kube, number, traffic=None, **scaling):
    """One more revision."""
    given = service(image=f"ember:{number}", traffic=traffic, **{"min_scale": 1, **scaling})
    kube.patch(SERVICES, "ember", {"spec": given["spec"]})


class TestVersion:
    """Whether a changed floor would replace pods, from an account of one namespace."""

    def refused(self, cluster, given=None):
        with pytest.raises(Failure) as failure:
            check_version(cluster, "ember-00001", given)
        assert failure.value.exit_code == 78
        return str(failure.value)

    @pytest.mark.parametrize("version", ["1.21.0", "v1.22.1", "1.22", "2.0.0"])
    def test_a_cluster_that_keeps_pods_is_fine(self, connect, version):
        check_version(connect(), "ember-00001", version)

    def test_the_revisions_own_deployment_shows_it(self, connect, kube):
        """Even where no label of Knative's may be read, or one tells something else."""
        kube.create(SERVICES, "ember", service(min_scale=1))
        kube.roles["pod"] = [
            {"apiGroups": [group], "resources": [kind], "verbs": ["get"]}
            for group, kind in (("serving.knative.dev", "revisions"), ("apps", "deployments"))
        ]
        check_version(connect("pod"), "ember-00001", None)

    def test_a_deployment_with_the_floor_in_its_pods_is_left_alone(self, tmp_path, monkeypatch):
        with running("1.20.4") as old:
            monkeypatch.setenv("KUBECONFIG", str(old.config(tmp_path)))
            old.create(SERVICES, "ember", service(min_scale=1))
            with Cluster.connect() as cluster:
                told = self.refused(cluster)
                check_version(cluster, "ember-00001", "1.21")  # who says so knows better
        assert re.search(
            r"copies the floor of ember-00001 .*before 1\.21, .*Nothing has been", told
        )

    @pytest.mark.parametrize("gone", ["deployment", "annotations"])
    def test_else_it_is_looked_up(self, connect, kube, gone):
        scaling = {} if gone == "annotations" else {"min_scale": 1}
        kube.create(SERVICES, "ember", service(**scaling))
        if gone == "deployment":
            kube.objects.delete(Key("apps", "deployments", "ember", "ember-00001-deployment"))
        check_version(connect(), "ember-00001", None)
        label = {"metadata": {"labels": {"app.kubernetes.io/version": "1.20.4"}}}
        kube.patch("namespaces", "knative-serving", label, namespace="")
        assert "is 1.20.4: before 1.21" in self.refused(connect())

    @pytest.mark.parametrize("version", ["1.20.9", "v1.9", "0.26.0"])
    def test_a_cluster_that_would_replace_pods_is_refused(self, connect, version):
        assert "replaces all its pods" in self.refused(connect(), version)

    @pytest.mark.parametrize("version", ["devel", "latest", "20260801-abcdef"])
    def test_a_version_that_says_nothing_is_refused(self, connect, version):
        assert "Say which it is: --knative-version" in self.refused(connect(), version)

    def test_a_version_that_cannot_be_read_is_refused(self, connect, kube):
        label = {"metadata": {"labels": {"app.kubernetes.io/version": None}}}
        kube.patch("namespaces", "knative-serving", label, namespace="")
        assert "Say which version of Knative Serving it is" in self.refused(connect())
        kube.roles["pod"] = []
        assert "Say which version of Knative Serving it is" in self.refused(connect("pod"))


class TestRevisions:
    def test_all_of_a_revision_is_read(self, connect, kube):
        given = service(min_scale=2, max_scale=9, target_utilization_percentage=75, gpus=2)
        kube.create(SERVICES, "ember", given)
        found = knative.revisions(connect(), "ember")
        main = found.main
        assert (main.name, main.floor, main.min_floor, main.max_floor) == ("ember-00001", 2, 0, 9)
        assert (main.per_replica, main.gpus, main.held, main.left) == (3.0, 2, None, ())
        assert found.others == ()

    @pytest.mark.parametrize(
        ("places", "scaling", "per_replica"),
        [
            (4, {}, 2.8),
            (1, {"target_utilization_percentage": 100}, 1.0),
            (4, {"target": 2, "target_utilization_percentage": 100}, 2.0),
            (4, {"target": 20, "target_utilization_percentage": 50}, 2.0),
            (0, {}, 70.0),
            (0, {"target": 10}, 7.0),
            (4, {"metric": "rps", "target": 10}, None),
        ],
    )
    def test_a_replica_has_as_much_as_its_autoscaler_means_it_to(
        self, connect, kube, places, scaling, per_replica
    ):
        kube.create(SERVICES, "ember", service(places=places, **scaling))
        main = knative.revisions(connect(), "ember").main
        assert main.per_replica == pytest.approx(per_replica)
        assert (main.floor, main.max_floor, main.gpus) == (0, None, 1)

    def test_the_latest_ready_revision_is_looked_up_each_time(self, connect, kube):
        cluster = connect()
        kube.create(SERVICES, "ember", service())
        assert knative.revisions(cluster, "ember").main.name == "ember-00001"
        kube.knative.starting = True
        release(kube, 2)
        assert knative.revisions(cluster, "ember").main.name == "ember-00001", "not ready yet"
        kube.knative.become_ready("ember", "ember-00002")
        assert knative.revisions(cluster, "ember").main.name == "ember-00002"

    def test_the_revision_with_most_of_the_traffic_is_the_main_one(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        release(kube, 2, split(("ember-00001", 90), (None, 10)))
        found = knative.revisions(connect(), "ember")
        assert found.main.name == "ember-00001"
        ((share,),) = (found.others,)
        assert (share.target.name, share.percent) == ("ember-00002", 10)
        assert [share.wanted(main) for main in (0, 1, 8, 20, 21)] == [0, 1, 1, 2, 3]

    def test_of_equals_the_latest_is_the_main_one(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        release(kube, 2, split(("ember-00001", 50), (None, 50)))
        assert knative.revisions(connect(), "ember").main.name == "ember-00002"

    def test_parts_of_the_traffic_of_one_revision_are_added_up(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        traffic = split(("ember-00001", 30), ("ember-00001", 30, "blue"), (None, 40))
        release(kube, 2, traffic)
        assert knative.revisions(connect(), "ember").main.name == "ember-00001"

    def test_a_share_keeps_to_its_ceiling(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        release(kube, 2, split(("ember-00001", 60), (None, 40)), max_scale=2)
        (share,) = knative.revisions(connect(), "ember").others
        assert [share.wanted(main) for main in (5, 20)] == [2, 2]

    def test_a_canary_has_a_pool_of_its_own(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        release(kube, 2, split(("ember-00001", 90), (None, 10, "canary")))
        (share,) = knative.revisions(connect(), "ember", {"canary": 2}).others
        assert [share.wanted(main) for main in (0, 20)] == [2, 2]
        (share,) = knative.revisions(connect(), "ember", {"other": 2}).others
        assert share.wanted(20) == 2, "a tenth: nobody has the tag"

    def test_a_pool_whose_revision_has_become_the_main_one_is_no_pool(self, connect, kube):
        kube.create(SERVICES, "ember", service(traffic=split((None, 100, "canary"))))
        found = knative.revisions(connect(), "ember", {"canary": 2})
        assert found.others == ()

    def test_a_revision_without_traffic_has_no_share(self, connect, kube):
        kube.create(SERVICES, "ember", service(min_scale=3))
        release(kube, 2, split(("ember-00001", 0, "previous"), (None, 100)))
        (share,) = knative.revisions(connect(), "ember").others
        assert (share.wanted(8), share.start) == (None, None)

    @pytest.mark.parametrize("value", ["true", "", "black friday"])
    def test_a_hold_is_read_from_the_service_only(self, connect, kube, value):
        kube.create(SERVICES, "ember", service(annotations={HOLD: value}))
        main = knative.revisions(connect(), "ember").main
        assert main.held.startswith("ember.dev/hold is set on Service ember")
        assert main.held.endswith(": black friday") is (value == "black friday")
        kube.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: "false"}}})
        assert knative.revisions(connect(), "ember").main.held is None
        kube.patch(REVISIONS, "ember-00001", {"metadata": {"annotations": {HOLD: value}}})
        main = knative.revisions(connect(), "ember").main
        assert (main.held, main.left) == (None, (HOLD,))

    def test_what_earlier_versions_have_left_is_seen(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        left = dict.fromkeys(EARLIER, "x") | {HOLD: "false"}
        kube.patch(REVISIONS, "ember-00001", {"metadata": {"annotations": left}})
        assert knative.revisions(connect(), "ember").main.left == EARLIER

    def test_older_spellings_of_the_scale_are_read(self, connect, kube):
        given = service()
        scaling = {"autoscaling.knative.dev/minScale": "2", "autoscaling.knative.dev/maxScale": "7"}
        given["spec"]["template"]["metadata"]["annotations"] = scaling
        kube.create(SERVICES, "ember", given)
        main = knative.revisions(connect(), "ember").main
        assert (main.floor, main.max_floor) == (2, 7)

    def test_what_is_not_there_is_named(self, connect, kube):
        with pytest.raises(Failure, match="no Knative Service ember in the namespace ember: use"):
            knative.revisions(connect(), "ember")
        kube.knative.starting = True
        kube.create(SERVICES, "ember", service())
        with pytest.raises(Failure, match="no Revision that is ready yet") as failure:
            knative.revisions(connect(), "ember")
        assert failure.value.exit_code == 75


class TestNext:
    """A Revision that has been made, and is not ready yet."""

    @pytest.fixture
    def starting(self, kube):
        kube.create(SERVICES, "ember", service(min_scale=1))
        kube.knative.starting = True
        return kube

    def test_it_is_seen_with_the_traffic_that_it_will_have(self, connect, starting):
        assert knative.coming(connect(), "ember") is None
        release(starting, 2, split(("ember-00001", 70), (None, 30)))
        assert knative.coming(connect(), "ember") == "ember-00002"
        found = knative.revisions(connect(), "ember")
        ((share,),) = (found.others,)
        assert (found.main.name, share.target.name) == ("ember-00001", "ember-00002")
        assert (share.percent, share.wanted(8)) == (30, 3)
        assert share.start == knative.Start(0, False, False, timedelta(minutes=5))

    def test_how_far_it_is_is_read(self, connect, starting):
        starting.knative.zero_initial_scale = True
        given = service(image="ember:2", min_scale=3, initial_scale=0)
        deadline = {"serving.knative.dev/progress-deadline": "1h2m10s"}
        given["spec"]["template"]["metadata"]["annotations"] |= deadline
        starting.patch(SERVICES, "ember", {"spec": given["spec"]})
        starting.knative.start("ember", "ember-00002", 2)
        (share,) = knative.revisions(connect(), "ember").others
        assert share.start == knative.Start(2, False, False, timedelta(minutes=31, seconds=5))
        starting.knative.become_ready("ember", "ember-00002", failed="no such image")
        (share,) = knative.revisions(connect(), "ember").others
        assert share.start.failed

    def test_one_that_may_start_with_no_pod_is_known_by_both_of_its_scales(self, connect, starting):
        starting.knative.zero_initial_scale = True
        given = service(image="ember:2", min_scale=0, initial_scale=0)
        starting.patch(SERVICES, "ember", {"spec": given["spec"]})
        (share,) = knative.revisions(connect(), "ember").others
        assert share.start == knative.Start(0, False, True, timedelta(minutes=5))

    def test_one_that_gets_no_traffic_is_not_seen(self, connect, starting):
        pinned = split(("ember-00001", 100))
        release(starting, 2, pinned)
        assert knative.revisions(connect(), "ember").others == ()
        starting.knative.become_ready("ember", "ember-00002")
        release(starting, 2, split(("ember-00001", 100), (None, 0, "next")))
        (share,) = knative.revisions(connect(), "ember").others
        assert (share.wanted(8), share.start) == (None, None)

    def test_a_pool_is_seen_before_its_revision_is_ready(self, connect, starting):
        release(starting, 2, split(("ember-00001", 100), (None, 0, "canary")))
        (share,) = knative.revisions(connect(), "ember", {"canary": 2}).others
        assert (share.target.name, share.wanted(8)) == ("ember-00002", 2)

    def test_traffic_that_is_to_move_to_what_is_not_there_stops_nothing(self, connect, starting):
        """As while Knative has not seen a changed spec.traffic yet, or cannot do it."""
        key = Key("serving.knative.dev", "services", "ember", "ember")
        found = starting.get(SERVICES, "ember")
        found["spec"]["traffic"] = split(("ember-00007", 100))
        starting.objects.keep(key, found)
        found = knative.revisions(connect(), "ember")
        assert (found.main.name, found.others) == ("ember-00001", ())


class TestChange:
    def test_a_changed_floor_tells_why_and_makes_no_revision(self, connect, kube):
        kube.create(SERVICES, "ember", service(min_scale=1))
        cluster = connect()
        main = knative.revisions(cluster, "ember").main
        assert change(cluster, main, 5, "window 0 8 * * mon-fri", NOW) is None
        annotations = kube.get(REVISIONS, "ember-00001")["metadata"]["annotations"]
        assert annotations[MIN_SCALE] == "5"
        assert all(name.startswith("autoscaling.knative.dev/") for name in annotations)
        assert kube.get(AUTOSCALERS, "ember-00001")["metadata"]["annotations"][MIN_SCALE] == "5"
        (event,) = kube.list("events")
        assert event["message"] == "Warm floor from 1 to 5: window 0 8 * * mon-fri"
        assert event["reason"] == "WarmFloorChanged"
        assert event["involvedObject"]["name"] == "ember-00001"
        assert event["involvedObject"]["uid"] == main.uid
        assert (len(kube.list(REVISIONS)), kube.knative.rolled) == (1, [])

    def test_an_autoscaler_is_changed_likewise(self, connect, kube):
        kube.create(SCALERS, "ember", {"spec": {"minReplicas": 2, "maxReplicas": 9}})
        cluster = connect()
        target = hpa.scaler(cluster, "ember")
        assert (target.floor, target.min_floor, target.max_floor) == (2, 1, 9)
        assert (target.per_replica, target.gpus) == (None, 1)
        change(cluster, target, 5, "x", NOW)
        found = kube.get(SCALERS, "ember")
        assert found["spec"] == {"minReplicas": 5, "maxReplicas": 9}
        (event,) = kube.list("events")
        assert event["involvedObject"]["kind"] == "HorizontalPodAutoscaler"
        assert event["involvedObject"]["apiVersion"] == "autoscaling/v2"

    def test_an_autoscaler_can_be_held_and_may_be_missing(self, connect, kube):
        with pytest.raises(Failure, match="no HorizontalPodAutoscaler ember in the namespace"):
            hpa.scaler(connect(), "ember")
        held = {"metadata": {"annotations": {HOLD: "true"}}, "spec": {"maxReplicas": 9}}
        kube.create(SCALERS, "ember", held)
        assert hpa.scaler(connect(), "ember").held.endswith("HorizontalPodAutoscaler ember")
        assert hpa.scaler(connect(), "ember").floor == 1

    def test_what_was_changed_meanwhile_is_left_alone(self, connect, kube):
        kube.create(SERVICES, "ember", service(min_scale=1))
        cluster = connect()
        main = knative.revisions(cluster, "ember").main
        kube.patch(REVISIONS, "ember-00001", {"metadata": {"annotations": {MIN_SCALE: "7"}}})
        with pytest.raises(Conflict):
            change(cluster, main, 5, "x", NOW)
        assert kube.get(REVISIONS, "ember-00001")["metadata"]["annotations"][MIN_SCALE] == "7"
        assert kube.list("events") == []

    def test_an_event_that_cannot_be_written_is_told(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        rule = {"apiGroups": ["serving.knative.dev"], "verbs": ["get", "patch"]}
        kube.roles["pod"] = [{**rule, "resources": ["services", "revisions"]}]
        cluster = connect("pod")
        failure = change(cluster, knative.revisions(cluster, "ember").main, 5, "x", NOW)
        assert str(failure).startswith("Not allowed to create events")
        assert kube.get(REVISIONS, "ember-00001")["metadata"]["annotations"][MIN_SCALE] == "5"

    def test_a_long_reason_still_makes_an_event(self, connect, kube):
        kube.create(SERVICES, "ember", service())
        cluster = connect()
        change(cluster, knative.revisions(cluster, "ember").main, 5, "x" * 5000, NOW)
        assert len(kube.list("events")[0]["message"]) == 1000


class TestLease:
    SPELL = timedelta(seconds=60)

    def take(self, cluster, holder, at=0):
        return Lease.take(
            cluster, "ember-prescale", holder, self.SPELL, NOW + timedelta(seconds=at)
        )

    def test_one_has_it_at_a_time(self, connect, kube):
        cluster = connect()
        self.take(cluster, "a")
        spec = kube.get(LEASES, "ember-prescale")["spec"]
        assert spec["holderIdentity"] == "a"
        assert spec["renewTime"] == "2026-11-30T12:00:00.000000Z"
        with pytest.raises(LeaseTaken, match="a has the Lease ember-prescale until 12:01:00 UTC"):
            self.take(cluster, "b", at=59)
        self.take(cluster, "a", at=59)
        self.take(cluster, "b", at=119)
        assert kube.get(LEASES, "ember-prescale")["spec"]["leaseTransitions"] == 1

    def test_who_lets_it_go_leaves_what_is_to_be_remembered(self, connect, kube):
        cluster = connect()
        self.take(cluster, "a").renew("note", NOW, release=True)
        assert peek(cluster, "ember-prescale") == "note"
        lease = self.take(cluster, "b", at=1)
        assert lease.memory == "note"
        assert kube.get(LEASES, "ember-prescale")["spec"]["holderIdentity"] == "b"

    def test_who_renews_it_keeps_it(self, connect):
        cluster = connect()
        lease = self.take(cluster, "a")
        lease.renew("1", NOW + timedelta(seconds=50), release=False)
        with pytest.raises(LeaseTaken, match="until 12:01:50"):
            self.take(cluster, "b", at=100)
        lease.renew("2", NOW + timedelta(seconds=100), release=False)
        assert peek(cluster, "ember-prescale") == "2"

    def test_who_was_too_slow_has_lost_it(self, connect):
        cluster = connect()
        slow = self.take(cluster, "a")
        self.take(cluster, "b", at=61).renew("b's", NOW, release=False)
        with pytest.raises(LeaseTaken, match="was lost: it took longer than 60 s"):
            slow.renew("a's", NOW, release=False)
        assert peek(cluster, "ember-prescale") == "b's"

    @pytest.mark.parametrize("verb", ["create", "update"])
    def test_of_two_that_take_it_at_once_one_gets_it(self, connect, kube, verb):
        cluster, other = connect(), connect()
        if verb == "update":
            self.take(cluster, "x").renew("", NOW, release=True)

        def meanwhile(call):
            if call.verb == verb and call.resource == LEASES:
                kube.before = lambda _: None
                self.take(other, "b")

        kube.before = meanwhile
        with pytest.raises(LeaseTaken, match="another pre-scaler has just taken"):
            self.take(cluster, "a")
        assert kube.get(LEASES, "ember-prescale")["spec"]["holderIdentity"] == "b"

    @pytest.mark.parametrize(
        "spec",
        [{}, {"holderIdentity": "a"}, {"holderIdentity": "a"} | {"leaseDurationSeconds": 60}],
    )
    def test_a_lease_without_times_is_free(self, connect, kube, spec):
        kube.create(LEASES, "ember-prescale", {"spec": spec})
        assert self.take(connect(), "b").memory is None

    def test_without_one_there_is_nothing_to_remember(self, connect):
        assert peek(connect(), "ember-prescale") is None


class TestFailures:
    def test_what_is_not_allowed_is_named_with_what_to_do(self, connect, kube):
        kube.roles["pod"] = []
        cluster = connect("pod")
        told = r"Not allowed to get services\.serving\.knative\.dev ember: .* needs a role with the"
        with pytest.raises(Failure, match=told + " verb get on .* in ember") as failure:
            knative.revisions(cluster, "ember")
        assert failure.value.exit_code == 77
        with pytest.raises(Failure, match="verb patch on services"):
            cluster.patch(Resource.SERVICE, "ember", {}, version="1")

    def test_what_the_webhook_refuses_is_told(self, connect, kube):
        kube.create(SERVICES, "ember", service(max_scale=4))
        cluster = connect()
        main = knative.revisions(cluster, "ember").main
        with pytest.raises(
            Failure, match=r"refuses to patch .*max-scale=4 is less than"
        ) as failure:
            change(cluster, main, 5, "x", NOW)
        assert failure.value.exit_code == 78

    def test_a_cluster_that_is_gone_is_named_with_what_to_do(self, tmp_path, monkeypatch):
        with running() as kube:
            monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path)))
        with (
            pytest.raises(
                Failure, match=r"does not answer .* See that http://127.0.0.1"
            ) as failure,
            Cluster.connect() as cluster,
        ):
            cluster.get(Resource.SERVICE, "ember")
        assert failure.value.exit_code == 69

    def test_an_answer_of_something_else_is_named(self, tmp_path, monkeypatch, kube):
        content = kube.config(tmp_path).read_text().replace(kube.url, f"{kube.url}/elsewhere")
        (tmp_path / "config").write_text(content)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        with Cluster.connect() as cluster, pytest.raises(Missing):
            cluster.get(Resource.SERVICE, "ember")

    def test_without_a_configuration_there_is_no_cluster(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        with pytest.raises(
            Failure, match=r"No cluster is configured: .* Set KUBECONFIG"
        ) as failure:
            Cluster.connect()
        assert failure.value.exit_code == 78
        (tmp_path / "none").write_text("}")
        with pytest.raises(Failure, match="No cluster is configured"):
            Cluster.connect()

    def test_what_an_extra_brings_is_named_when_it_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "lightkube", None)
        with pytest.raises(Failure, match=r"needs lightkube: make install EXTRAS=k8s"):
            Cluster.connect()

    def test_a_namespace_can_be_given(self, kube, tmp_path, monkeypatch):
        monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path)))
        kube.create(SERVICES, "ember", service(), namespace="other")
        with Cluster.connect("other") as cluster:
            assert knative.revisions(cluster, "ember").main.name == "ember-00001"
        with Cluster.connect() as cluster:
            assert cluster.namespace == "ember"


def test_objects_are_written_as_they_were_read(connect, kube):
    """Nothing that others have put there is lost when a Lease is renewed."""
    kube.create(LEASES, "x", {"metadata": {"labels": {"a": "b"}}, "spec": {"strategy": "y"}})
    lease = Lease.take(connect(), "x", "me", timedelta(seconds=60), NOW)
    lease.renew(json.dumps({"a": 1}), NOW, release=True)
    assert kube.get(LEASES, "x")["metadata"]["labels"] == {"a": "b"}
