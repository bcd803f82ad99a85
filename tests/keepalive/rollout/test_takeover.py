"""Which revision a rollout judges, what it takes over, and how it ends wherever it was cut off."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from keepalive.cli import commands
from keepalive.failure import Failure
from keepalive.rollout.config import RevisionRejected
from keepalive.rollout.traffic import MARK
from tests.keepalive.rollout.rolling import (
    NEW,
    OLD,
    REVISIONS,
    SERVICES,
    Time,
    annotations,
    make,
    replicas,
    spied,
    split,
)
from tests.kube.server import running
from tests.kube.service import service

THIRD, FOURTH = "ember-00003", "ember-00004"
PINNED = {"spec": {"traffic": [{"revisionName": OLD, "percent": 100}]}}
FOLLOWS = [{"latestRevision": True, "percent": 100}]


def floor(kube, name, value):
    changed = {"autoscaling.knative.dev/min-scale": str(value)}
    kube.patch(REVISIONS, name, {"metadata": {"annotations": changed}})


def fail(kube, name):
    """It has not started."""
    return lambda: kube.knative.become_ready("ember", name, failed="no such image")


def undone(kube, connect):
    """A rollout of ember:2 was undone, as it did not start."""
    kube.knative.starting = True
    with pytest.raises(RevisionRejected, match=f"{NEW} does not become ready"):
        make(connect, Time(fail(kube, NEW))).run()
    kube.knative.starting = False


class TestWhichRevision:
    def test_a_good_image_is_not_judged_by_the_broken_one_before_it(self, ember, connect):
        undone(ember, connect)
        seen = spied(ember)
        assert make(connect, image="ember:3", steps=(50, 100)).run() == THIRD
        assert seen == [{OLD: 100}, {OLD: 50, THIRD: 50}, {THIRD: 100}]
        assert ember.get(SERVICES, "ember")["spec"]["traffic"] == FOLLOWS

    def test_swaps_are_made_by_the_new_revision_not_by_the_one_that_has_its_tag_still(
        self, ember, connect
    ):
        make(connect, steps=(100,)).run()
        ember.knative.starting = True
        seen = []

        def ready():
            found = ember.get(SERVICES, "ember")["status"]["traffic"]
            seen.extend(one["revisionName"] for one in found if one.get("tag") == "next")
            ember.knative.become_ready("ember", THIRD)

        said = []
        make(connect, Time(ready), said, image="ember:3", steps=(100,)).run()
        assert seen == [NEW]  # the latest that is ready has the tag until the new one is
        assert said.index(f"{THIRD} is ready") < said.index(
            next(line for line in said if line.startswith("golden swap"))
        )

    def test_a_controller_that_does_not_come_by_is_told(self, ember, connect):
        ember.knative.late = 10**6
        with pytest.raises(Failure, match="Knative has not taken up the image ember:2 of ember"):
            make(connect, wait_s=60).run()
        ember.knative.late = 2
        ember.knative.settle()
        assert make(connect).run() == NEW

    def test_the_same_image_is_tried_again_while_it_does_not_serve(self, ember, connect):
        undone(ember, connect)
        assert make(connect).run() == THIRD
        assert split(ember) == {THIRD: 100}
        spec = ember.get(REVISIONS, THIRD)["spec"]
        assert spec["containers"][0]["image"] == "ember:2"

    def test_and_again(self, ember, connect):
        undone(ember, connect)
        ember.knative.starting = True
        with pytest.raises(RevisionRejected, match=f"{THIRD} does not become ready"):
            make(connect, Time(fail(ember, THIRD))).run()
        ember.knative.starting = False
        assert make(connect).run() == FOURTH
        with pytest.raises(Failure, match=r"has the image ember:2 already\.$"):
            make(connect).run()

    def test_the_image_that_serves_can_be_made_the_latest_again(self, ember, connect):
        undone(ember, connect)
        assert make(connect, image="ember:1").run() == THIRD
        assert ember.get(SERVICES, "ember")["spec"]["traffic"] == FOLLOWS

    def test_somebodys_other_template_gets_no_traffic_unproven(self, ember, connect):
        other = {"spec": {"template": service(image="ember:9", min_scale=1)["spec"]["template"]}}
        time = Time(lambda: ember.patch(SERVICES, "ember", other))
        seen = spied(ember)
        with pytest.raises(Failure, match=f"{NEW} has all traffic, but somebody has changed"):
            make(connect, time, steps=(50, 100)).run()
        assert seen == [{OLD: 100}, {OLD: 50, NEW: 50}, {NEW: 100}]
        assert split(ember) == {NEW: 100}
        assert MARK not in ember.get(SERVICES, "ember")["metadata"]["annotations"]

    def test_nor_is_it_taken_for_the_new_one(self, ember, connect):
        other = {"spec": {"template": service(image="ember:9")["spec"]["template"]}}

        def change(call):
            if call.verb == "patch" and call.resource == REVISIONS:
                ember.before = lambda _: None
                ember.patch(SERVICES, "ember", other)

        ember.knative.demand = 2
        ember.knative.pass_a_window()
        ember.before = change
        with pytest.raises(Failure, match=f"its latest revision {NEW} has the image ember:9"):
            make(connect).run()
        make(connect).abort()
        assert split(ember) == {OLD: 100}

    def test_a_name_that_kn_has_given_the_revision_before_is_in_nobodys_way(self, ember, connect):
        given = service(image="ember:1")["spec"]
        given["template"]["metadata"]["name"] = "ember-abcde-2"
        ember.patch(SERVICES, "ember", {"spec": given})
        assert make(connect).run() == THIRD
        assert split(ember) == {THIRD: 100}

    def test_what_others_have_behind_tags_stays(self, ember, connect):
        mine = {"tag": "vip", "revisionName": OLD, "percent": 0}
        ember.patch(SERVICES, "ember", {"spec": {"traffic": [*FOLLOWS, mine]}})
        make(connect).run()
        assert ember.get(SERVICES, "ember")["spec"]["traffic"] == [*FOLLOWS, mine]


class TestReplicas:
    @pytest.mark.parametrize(
        ("raised", "demand", "wanted", "starts"),
        [
            (1, 0, {}, "1"),
            (4, 0, {}, "4"),  # a floor that was raised
            (1, 5, {}, "5"),  # replicas that the traffic calls for
            (4, 6, {}, "6"),
            (1, 20, {}, "8"),  # never more than max-scale
            (4, 0, {"replicas": 2}, "2"),
            (1, 0, {"replicas": 20}, "8"),
        ],
    )
    def test_a_new_revision_starts_with_as_many_as_serve(
        self, ember, connect, raised, demand, wanted, starts
    ):
        floor(ember, OLD, raised)
        ember.knative.demand = demand
        ember.knative.pass_a_window()
        make(connect, **wanted).run()
        assert annotations(ember, NEW)["initial-scale"] == starts

    def test_one_that_serves_nobody_starts_with_one(self, kube, connect):
        floor(kube, OLD, 0)
        kube.knative.pass_a_window()
        assert replicas(kube, OLD) == 0
        make(connect).run()
        assert annotations(kube, NEW)["initial-scale"] == "1"

    def test_each_part_of_the_traffic_has_its_replicas_before_it_comes(self, ember, connect):
        floor(ember, OLD, 4)
        ember.knative.demand = 4
        ember.knative.pass_a_window()
        enough = []

        def look(call):
            for name, percent in split(ember).items():
                enough.append(replicas(ember, name) >= 4 * percent / 100)

        ember.before = look
        windows = [ember.knative.pass_a_window] * 4
        make(connect, Time(*windows), steps=(5, 25, 50, 100)).run()
        assert all(enough)
        assert annotations(ember, NEW)["min-scale"] == "4"  # the floor, as it was

    def test_replicas_that_were_only_traffic_are_no_floor_afterwards(self, ember, connect):
        ember.knative.demand = 6
        ember.knative.pass_a_window()
        make(connect).run()
        assert annotations(ember, NEW)["initial-scale"] == "6"
        assert annotations(ember, NEW)["min-scale"] == "1"

    def test_a_floor_that_somebody_raises_meanwhile_stays(self, ember, connect):
        time = Time(lambda: None, lambda: floor(ember, NEW, 7))
        make(connect, time, steps=(50, 100)).run()
        assert annotations(ember, NEW)["min-scale"] == "7"

    def test_given_back_the_traffic_meets_the_replicas_that_it_had(self, ember, connect):
        ember.knative.demand = 4
        ember.knative.pass_a_window()
        met = []

        def look(call):
            if call.verb == "get" and split(ember) == {OLD: 100}:
                met.append(replicas(ember, OLD))

        ember.before = look
        fails = lambda: ember.knative.become_ready("ember", NEW, failed="lost its GPU")  # noqa: E731
        time = Time(*[ember.knative.pass_a_window] * 3, fails)
        with pytest.raises(RevisionRejected):
            make(connect, time, steps=(5, 50, 90, 100)).run()
        assert set(met) == {4}
        assert annotations(ember, OLD)["min-scale"] == "1"

    def test_without_room_the_old_revision_keeps_everything(self, ember, connect):
        floor(ember, OLD, 4)
        ember.knative.starting = True
        with pytest.raises(
            RevisionRejected, match=r"It starts with 4 replicas.*no room.*--replicas"
        ):
            make(connect, wait_s=10).run()
        assert split(ember) == {OLD: 100}

    def test_without_room_for_a_step_it_does_too(self, ember, connect):
        floor(ember, OLD, 4)

        def lost():
            ember.knative.pass_a_window()
            ember.knative.starting = True

        with pytest.raises(RevisionRejected, match=f"{NEW} has 1 of the 4 replicas that 100 %"):
            make(connect, Time(lost), steps=(5, 100), wait_s=10).run()
        assert split(ember) == {OLD: 100}

    def test_a_floor_may_not_pass_the_activation_scale(self, kube, connect):
        scaling = {"min_scale": 1, "max_scale": 8, "activation_scale": 2}
        kube.patch(SERVICES, "ember", {"spec": service(image="ember:1", **scaling)["spec"]})
        kube.knative.demand = 4
        kube.knative.pass_a_window()
        assert make(connect, image="ember:2").run() == THIRD
        assert annotations(kube, THIRD)["activation-scale"] == "4"


class Killed(BaseException):
    """As by SIGKILL."""


class Dying:
    """A way to a cluster that ends before one of its calls."""

    def __init__(self, cluster, lives):
        self._cluster, self._lives, self.namespace = cluster, lives, cluster.namespace

    def _call(self, name, *words, **named):
        if self._lives == 0:
            raise Killed
        self._lives -= 1
        return getattr(self._cluster, name)(*words, **named)

    def get(self, *words):
        return self._call("get", *words)

    def patch(self, *words, **named):
        return self._call("patch", *words, **named)


def again(rollout):
    """The same command, which may find that only the last words were not said."""
    try:
        rollout.run()
    except Failure as failure:
        if str(failure) != "ember has the image ember:2 already.":
            raise


class TestKilledAnywhere:
    """Each rollout is cut off before its first call, its second and so on, and run again."""

    def clusters(self, server, tmp_path, monkeypatch, prepare):
        lives = 0
        while True:
            from keepalive.cluster.client import Cluster

            with running() as kube:
                kube.knative.address = server.url
                scaling = {"image": "ember:1", "min_scale": 1, "max_scale": 8}
                kube.create(SERVICES, "ember", service(**scaling))
                monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path)))
                with Cluster.connect() as cluster:
                    prepare(kube, cluster)
                    yield kube, cluster, Dying(cluster, lives)
            lives += 1

    def test_a_good_image_has_all_traffic_in_the_end(self, server, tmp_path, monkeypatch):
        def prepare(kube, _):
            floor(kube, OLD, 3)

        cut = 0
        for kube, cluster, dying in self.clusters(server, tmp_path, monkeypatch, prepare):
            whole = True
            try:
                make(dying, steps=(50, 100)).run()
            except Killed:
                whole = False
                cut += 1
                again(make(cluster, steps=(50, 100)))
            kube.knative.settle()
            found = kube.get(SERVICES, "ember")
            assert split(kube) == {NEW: 100}
            assert found["spec"]["traffic"] == FOLLOWS
            assert MARK not in found["metadata"]["annotations"]
            assert annotations(kube, NEW)["min-scale"] == "3"
            assert annotations(kube, NEW)["initial-scale"] == "3"
            if whole:
                break
        assert cut > 20

    def test_one_gpu_has_the_new_image_in_the_end(self, server, tmp_path, monkeypatch):
        def prepare(kube, _):
            kube.knative.zero_initial_scale = True

        for kube, cluster, dying in self.clusters(server, tmp_path, monkeypatch, prepare):
            whole = True
            try:
                make(dying, single_gpu=True).run()
            except Killed:
                whole = False
                again(make(cluster, single_gpu=True))
            kube.knative.settle()
            assert split(kube) == {NEW: 100}
            assert kube.get(SERVICES, "ember")["spec"]["traffic"] == FOLLOWS
            assert len(kube.list(REVISIONS)) == 2
            if whole:
                break

    def test_a_bad_image_has_none_and_a_good_one_after_it_has_all(
        self, server, tmp_path, monkeypatch
    ):
        bad = {"most_s": 0.000001, "steps": (100,)}

        def prepare(kube, _):
            kube.knative.demand = 3
            kube.knative.pass_a_window()

        for kube, cluster, dying in self.clusters(server, tmp_path, monkeypatch, prepare):
            whole = False
            try:
                make(dying, **bad).run()
            except RevisionRejected:
                whole = True
            except Killed:
                with pytest.raises(RevisionRejected):
                    make(cluster, **bad).run()
            kube.knative.settle()
            assert split(kube) == {OLD: 100}
            assert kube.get(SERVICES, "ember")["spec"]["traffic"] == [
                {"revisionName": OLD, "percent": 100}
            ]
            assert annotations(kube, OLD)["min-scale"] == "1"
            assert MARK not in kube.get(SERVICES, "ember")["metadata"]["annotations"]
            make(cluster, image="ember:3", steps=(100,)).run()
            assert kube.get(SERVICES, "ember")["spec"]["traffic"] == FOLLOWS
            if whole:
                break


class TestUnpin:
    def run(self, *words):
        return CliRunner().invoke(commands, ["rollout", *words])

    def test_what_was_undone_is_pinned_and_says_so(self, ember, connect):
        said = []
        with pytest.raises(RevisionRejected):
            make(connect, None, said, most_s=0.000001).run()
        assert "pinned by name" in said[-1]
        assert "--unpin" in said[-1]

    def test_the_latest_revision_that_serves_is_unpinned(self, ember, connect):
        ember.patch(
            SERVICES, "ember", {"spec": {"traffic": [{"revisionName": OLD, "percent": 100}]}}
        )
        done = self.run("--unpin")
        assert done.exit_code == 0, done.output
        assert ember.get(SERVICES, "ember")["spec"]["traffic"] == FOLLOWS
        assert self.run("--unpin").stdout == (
            "The traffic of ember is not pinned: its latest revision gets it.\n"
        )

    @pytest.mark.parametrize("starts", [True, False])
    def test_another_latest_revision_gets_nothing_unproven(self, ember, connect, starts):
        named = [{"revisionName": OLD, "percent": 100}]
        ember.knative.starting = not starts
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", traffic=named)["spec"]})
        done = self.run("--unpin")
        assert done.exit_code == 78
        assert f"{OLD} has the traffic of ember, and unpinned {NEW} would get it" in done.stderr
        for image in ("ember:2", "ember:1"):
            assert f"`ember rollout --image {image}`" in done.stderr
        assert ember.get(SERVICES, "ember")["spec"]["traffic"] == named

    def test_a_rollout_that_is_under_way_is_not_unpinned(self, ember, connect):
        with pytest.raises(Killed):
            make(Dying(connect, 12)).run()
        assert json.loads(ember.get(SERVICES, "ember")["metadata"]["annotations"][MARK])
        done = self.run("--unpin")
        assert done.exit_code == 78
        assert "A rollout of ember:2 is under way" in done.stderr

    def test_traffic_that_a_person_has_split_is_theirs(self, ember, connect):
        parts = [{"revisionName": OLD, "percent": 40}, {"latestRevision": True, "percent": 60}]
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", traffic=parts)["spec"]})
        done = self.run("--unpin")
        assert done.exit_code == 78
        assert f"The traffic is with {OLD} 40 %, {NEW} 60 %" in done.stderr

    def test_an_image_that_serves_by_its_name_is_there_already_and_pinned(self, ember, connect):
        ember.patch(
            SERVICES, "ember", {"spec": {"traffic": [{"revisionName": OLD, "percent": 100}]}}
        )
        done = self.run("--image", "ember:1")
        assert done.exit_code == 78
        assert "has the image ember:1 already. The traffic of ember is pinned to" in done.stderr

    @pytest.mark.parametrize(
        "words", [(), ("--unpin", "--abort"), ("--unpin", "--image", "x"), ("--unpin", "--dry-run")]
    )
    def test_one_thing_at_a_time(self, words):
        assert self.run(*words).exit_code == 2
