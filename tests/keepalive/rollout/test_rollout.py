"""A rollout against a cluster in this process, with swaps by a real server."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from keepalive.cli import commands
from keepalive.cluster.target import HOLD
from keepalive.failure import Failure
from keepalive.pinger import swap
from keepalive.rollout import rollout as rolling
from keepalive.rollout.config import RevisionRejected
from keepalive.rollout.judge import RevisionMetrics
from keepalive.rollout.traffic import MARK
from tests.keepalive.answering import answering
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
from tests.kube.service import service


class TestAllIsWell:
    def test_traffic_moves_in_steps_and_ends_as_after_any_update(self, ember, connect):
        seen, said, time = spied(ember), [], Time()
        assert make(connect, time, said, steps=(10, 50, 100)).run() == NEW
        assert seen == [
            {OLD: 100},
            {OLD: 90, NEW: 10},
            {OLD: 50, NEW: 50},
            {NEW: 100},
        ]
        found = ember.get(SERVICES, "ember")
        assert found["spec"]["traffic"] == [{"latestRevision": True, "percent": 100}]
        assert MARK not in found["metadata"]["annotations"]
        assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "ember:2"
        assert time.slept == [120.0] * 3
        assert said[-1] == f"{NEW} has all traffic"
        assert any(line.startswith("golden swap 1: well, ") for line in said)

    def test_the_init_container_gets_the_image_too_and_others_keep_theirs(self, ember, connect):
        spec = ember.get(SERVICES, "ember")["spec"]
        spec["template"]["spec"]["initContainers"] = [{"name": "a", "image": "ember:1"}]
        spec["template"]["spec"]["containers"].append({"name": "b", "image": "other:1"})
        ember.patch(SERVICES, "ember", {"spec": spec})
        make(connect).run()
        spec = ember.get(SERVICES, "ember")["spec"]["template"]["spec"]
        assert [one["image"] for one in spec["containers"]] == ["ember:2", "other:1"]
        assert [one["image"] for one in spec["initContainers"]] == ["ember:2"]

    def test_nothing_moves_before_the_new_revision_is_warm(self, ember, connect):
        ember.knative.starting = True
        seen = spied(ember)
        time = Time(lambda: None, lambda: ember.knative.become_ready("ember", NEW))
        make(connect, time, steps=(100,)).run()
        assert seen == [{OLD: 100}, {NEW: 100}]
        assert time.slept == [2.0, 2.0, 120.0]

    def test_somebody_else_may_change_the_service_meanwhile(self, ember, connect):
        left = [3]

        def label(call):
            if call.verb == "patch" and left[0]:
                left[0] -= 1
                ember.patch(SERVICES, "ember", {"metadata": {"labels": {"a": str(left[0])}}})

        ember.before = label
        assert make(connect).run() == NEW

    def test_with_one_gpu_the_traffic_goes_first(self, ember, connect):
        ember.knative.zero_initial_scale = True
        seen = spied(ember)
        assert make(connect, single_gpu=True).run() == NEW
        assert seen == [{OLD: 100}, {NEW: 100}]
        given = ember.get(REVISIONS, NEW)["metadata"]["annotations"]
        assert given["autoscaling.knative.dev/initial-scale"] == "0"

    def test_with_one_gpu_the_new_pod_waits_for_it_and_nobody_for_the_new_pod(self, ember, connect):
        """The template's min-scale of 1 would have the new revision wait for the old one's GPU."""
        knative = ember.knative
        knative.zero_initial_scale, knative.room, knative.demand = True, 1, 1
        seen = spied(ember)
        assert make(connect, single_gpu=True).run() == NEW
        assert seen == [{OLD: 100}, {NEW: 100}]
        knative.pass_a_window()
        assert (replicas(ember, OLD), replicas(ember, NEW)) == (0, 1)
        assert annotations(ember, NEW)["min-scale"] == "1"

    def test_with_one_gpu_the_first_swap_may_last_as_long_as_a_start(
        self, ember, connect, monkeypatch
    ):
        ember.knative.zero_initial_scale = True
        asked, ask = [], swap.swap

        def asking(at, timeout_s, headers):
            asked.append(timeout_s)
            seconds = 200.0 if len(asked) == 1 else 0.1
            return replace(ask(at, timeout_s, headers), latency_s=seconds)

        monkeypatch.setattr(swap, "swap", asking)
        make(connect, single_gpu=True, swaps=3, most_s=1.0, wait_s=900.0, timeout_s=45.0).run()
        assert asked == [900.0, 45.0, 45.0]

    def test_one_whose_node_is_still_to_come_is_waited_for(self, ember, connect):
        ember.knative.room = 1
        time = Time(lambda: None, lambda: grown(ember.knative))

        def grown(knative):
            knative.room = 2
            knative.become_ready("ember", NEW)

        said = []
        assert make(connect, time, said, steps=(100,)).run() == NEW
        assert any(line.startswith(f"waiting for {NEW}: Unschedulable: 0/1") for line in said)


class TestSomethingIsWrong:
    def test_one_whose_node_never_comes_gets_nothing(self, ember, connect):
        ember.knative.room = 1
        with pytest.raises(
            RevisionRejected, match=r"is not ready after 60 s\. Unschedulable: 0/1 nodes"
        ):
            make(connect, wait_s=60).run()
        assert self.back(ember)

    def back(self, kube):
        found = kube.get(SERVICES, "ember")
        assert split(kube) == {OLD: 100}
        assert MARK not in found["metadata"]["annotations"]
        return True

    def test_a_revision_that_does_not_start_gets_nothing(self, ember, connect):
        ember.knative.starting = True
        fails = lambda: ember.knative.become_ready("ember", NEW, failed="no such image")  # noqa: E731
        with pytest.raises(
            RevisionRejected, match="does not become ready: ContainerMissing: no such image"
        ):
            make(connect, Time(fails)).run()
        assert self.back(ember)

    def test_one_that_takes_too_long_gets_nothing(self, ember, connect):
        ember.knative.starting = True
        time = Time()
        with pytest.raises(RevisionRejected, match="is not ready after 60 s"):
            make(connect, time, wait_s=60).run()
        assert self.back(ember)
        assert sum(time.slept) == 60

    def test_one_that_does_not_swap_gets_nothing(self, ember, connect):
        seen = spied(ember)
        ember.knative.address = "http://127.0.0.1:9"
        with pytest.raises(
            RevisionRejected, match=r"golden swap 1 at http://127\.0\.0\.1:9: .*refused"
        ):
            make(connect).run()
        assert self.back(ember)
        assert seen == [{OLD: 100}]

    def test_one_that_swaps_slowly_gets_nothing(self, ember, connect):
        with pytest.raises(RevisionRejected, match=r"golden swap 1 took .* s; 0\.0001 are allowed"):
            make(connect, most_s=0.0001).run()
        assert self.back(ember)

    def test_one_that_is_too_busy_to_swap_is_tried_again_later(self, ember, connect):
        with answering(503, b'{"code": "overloaded", "request_id": "r1"}') as busy:
            ember.knative.address = busy.url
            with pytest.raises(Failure, match=r"503 overloaded .*Run the same command again"):
                make(connect).run()
        assert MARK in ember.get(SERVICES, "ember")["metadata"]["annotations"]

    def test_one_that_is_worse_under_load_gives_its_traffic_back(self, ember, connect, monkeypatch):
        seen = spied(ember)
        told = {OLD: RevisionMetrics(1000, 0.0, 0.4), NEW: RevisionMetrics(1000, 0.0, 0.4)}
        monkeypatch.setattr(rolling.judge, "revision_metrics", lambda _, name, *__: told[name])
        time = Time(lambda: None, lambda: told.update({NEW: RevisionMetrics(500, 0.2, 0.4)}))
        with pytest.raises(RevisionRejected, match=r"20\.0% of its swaps fail; 0\.5% are allowed"):
            make(connect, time, steps=(5, 50, 100), prometheus=object()).run()
        assert self.back(ember)
        assert seen[-2:] == [{OLD: 50, NEW: 50}, {OLD: 100}]

    def test_one_that_breaks_meanwhile_gives_its_traffic_back(self, ember, connect):
        fails = lambda: ember.knative.become_ready("ember", NEW, failed="lost its GPU")  # noqa: E731
        with pytest.raises(RevisionRejected, match=r"is not ready any more: .*lost its GPU"):
            make(connect, Time(fails)).run()
        assert self.back(ember)


class TestInterrupted:
    class Killed(BaseException):
        pass

    def interrupt(self, connect, after):
        def die():
            raise self.Killed

        with pytest.raises(self.Killed):
            make(connect, Time(*[lambda: None] * after, die), steps=(10, 50, 100)).run()

    def test_the_same_command_goes_on_where_it_was(self, ember, connect):
        self.interrupt(connect, 1)
        assert split(ember) == {OLD: 50, NEW: 50}
        seen, said = spied(ember), []
        make(connect, None, said, steps=(10, 50, 100)).run()
        assert seen == [{OLD: 50, NEW: 50}, {NEW: 100}]
        assert said[0] == "A rollout of ember:2 goes on after 1 steps"
        assert len(ember.list(REVISIONS)) == 2

    def test_another_image_has_to_wait(self, ember, connect):
        self.interrupt(connect, 0)
        with pytest.raises(Failure, match="A rollout of ember:2 is under way: finish it"):
            make(connect, image="ember:3").run()

    def test_it_can_be_ended(self, ember, connect):
        self.interrupt(connect, 1)
        make(connect).abort()
        assert split(ember) == {OLD: 100}
        with pytest.raises(Failure, match="is in no rollout"):
            make(connect).abort()

    def test_a_mark_that_nobody_can_read_is_told(self, ember, connect):
        ember.patch(SERVICES, "ember", {"metadata": {"annotations": {MARK: "{"}}})
        with pytest.raises(Failure, match=f"The annotation {MARK} of the Service cannot be read"):
            make(connect).run()


class TestRefused:
    def test_the_image_that_is_there_already(self, ember, connect):
        with pytest.raises(Failure, match="ember has the image ember:1 already"):
            make(connect, image="ember:1").run()

    def test_traffic_that_is_split_by_somebody_else(self, ember, connect):
        parts = [
            {"revisionName": OLD, "percent": 50},
            {"latestRevision": True, "percent": 50},
        ]
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:x", traffic=parts)["spec"]})
        with pytest.raises(Failure, match=f"The traffic is with {OLD} 50 %, {NEW} 50 %"):
            make(connect).run()

    def test_a_service_that_is_not_there(self, ember, connect):
        with pytest.raises(Failure, match="no Knative Service swap in the namespace ember"):
            make(connect, service="swap").run()

    def test_a_service_that_a_person_holds(self, ember, connect):
        ember.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: "fair"}}})
        with pytest.raises(Failure, match=f"{HOLD} is set on Service ember: fair; remove it"):
            make(connect).run()
        assert split(ember) == {OLD: 100}


class TestTheCommand:
    def run(self, *words):
        return CliRunner().invoke(commands, ["rollout", *words])

    def test_it_rolls_out(self, ember, connect):
        done = self.run("--image", "ember:2", "--pause", "0", "--swaps", "1", "--steps", "50,100")
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines()[-1] == f"{NEW} has all traffic"

    def test_a_dry_run_changes_nothing(self, ember, connect):
        before = json.dumps(ember.get(SERVICES, "ember"))
        done = self.run("--image", "ember:2", "--dry-run", "--steps", "50,100")
        assert done.exit_code == 0
        assert done.stdout.splitlines() == [
            "would make a revision with ember:2 under the tag next, at 0 %",
            "would wait until it is proven warm, 1260 s at most",
            "would have it make 3 golden swaps",
            "would give it 50 %, watched for 120 s, not compared",
            "would give it 100 %, watched for 120 s, not compared",
            f"when something is wrong: all traffic back to {OLD}",
        ]
        assert json.dumps(ember.get(SERVICES, "ember")) == before

    def test_an_image_that_is_worse_is_76(self, ember, connect):
        words = ("--image", "ember:2", "--pause", "0", "--max-latency", "0.0001")
        done = self.run(*words)
        assert done.exit_code == 76
        assert done.stderr.startswith("Error: golden swap 1 took ")

    @pytest.mark.parametrize("steps", ["", "5,50", "50,5,100", "0,100", "x", "5,5,100"])
    def test_steps_rise_to_100(self, steps):
        done = self.run("--image", "x", "--steps", steps)
        assert done.exit_code == 2
        assert "They look like 5,25,50,100" in done.stderr

    def test_an_image_is_needed(self):
        assert self.run().exit_code == 2

    def test_without_a_cluster_it_says_so(self, monkeypatch, tmp_path):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        done = self.run("--image", "x")
        assert done.exit_code == 78
        assert "No cluster is configured" in done.stderr
