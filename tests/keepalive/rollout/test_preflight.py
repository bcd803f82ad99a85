"""What a deployment has to know first, as a decision on what the cluster says."""

from __future__ import annotations

import json
import sys

import pytest

from keepalive.cluster.kubectl import complaint, ran
from keepalive.failure import Failure
from keepalive.rollout.preflight import PreflightRequest, PreflightResult, decide, patch
from tests.kube.service import service

OLD, NEW = "ember-00001", "ember-00002"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PINNED = [{"revisionName": OLD, "percent": 100}]


def live(traffic=None, latest=OLD, image="ember:1", declared=None, **scaling):
    found = service(image=image, traffic=traffic, **scaling)
    found["metadata"]["name"] = "ember"
    spec = {"traffic": declared} if declared else {}
    found["metadata"]["annotations"][APPLIED] = json.dumps({"spec": spec})
    found["status"] = {"latestCreatedRevisionName": latest, "traffic": PINNED}
    return found


def revision(replicas, **scaling):
    found = service(**scaling)["spec"]["template"]
    return {**found, "status": {"actualReplicas": replicas}}


def ask(before, after, *revisions, **asked):
    return decide(PreflightRequest("ember", "ember", "x", **asked), before, after, revisions)


class TestReplicas:
    @pytest.mark.parametrize(
        ("serving", "after", "asked", "scale"),
        [
            ([revision(4)], {}, {}, "4"),
            ([revision(1, min_scale=3)], {}, {}, "3"),
            ([revision(2), revision(3)], {}, {}, "5"),  # traffic that was split
            ([revision(4)], {"max_scale": 3}, {}, "3"),
            ([revision(4)], {"max_scale": 0}, {}, "4"),
            ([revision(4)], {"initial_scale": 4}, {}, None),  # it says so itself
            ([revision(4)], {"initial_scale": 6}, {}, None),
            ([revision(4)], {"initial_scale": 0}, {}, None),  # meant to start with none
            ([revision(0)], {}, {}, "1"),
            ([], {}, {}, "1"),
            ([revision(4)], {}, {"replicas": 2}, "2"),
            ([revision(4)], {"max_scale": 3}, {"replicas": 9}, "3"),
        ],
    )
    def test_a_new_revision_starts_with_as_many_as_serve(self, serving, after, asked, scale):
        after = live(image="ember:2", **after)
        assert ask(live(), after, *serving, **asked).initial_scale == scale

    @pytest.mark.parametrize("alias", ["minScale", "min-scale"])
    def test_older_names_count(self, alias):
        found = revision(1)
        found["metadata"]["annotations"] = {f"autoscaling.knative.dev/{alias}": "3"}
        assert ask(live(), live(image="ember:2"), found).initial_scale == "3"

    def test_what_was_carried_over_before_is_no_change(self):
        before, after = live(initial_scale=4), live(initial_scale=1)
        assert ask(before, after, revision(2)) == PreflightResult("4")
        assert ask(before, before, revision(2)) == PreflightResult(None)
        assert ask(live(), live(), revision(2)) == PreflightResult(None)

    def test_where_the_cluster_cannot_try_the_pod_the_template_counts_as_another(self):
        assert ask(live(), None, revision(4)).initial_scale == "4"

    def test_it_is_a_patch_for_a_kustomization(self):
        import yaml

        (item,) = yaml.safe_load(patch("ember", PreflightResult("4")))
        changed = json.loads(item["patch"])
        annotations = changed["spec"]["template"]["metadata"]["annotations"]
        assert annotations == {"autoscaling.knative.dev/initial-scale": "4"}
        assert item["target"]["name"] == "ember"
        (item,) = yaml.safe_load(patch("ember", PreflightResult(unpins=True)))
        changed = json.loads(item["patch"])
        assert changed["metadata"]["annotations"] == {"ember.dev/unpin": "true"}
        assert "spec" not in changed
        assert patch("ember", PreflightResult(None, "said")) is None


class TestPins:
    @pytest.mark.parametrize("known", [True, False])
    def test_a_pin_stops_it(self, known):
        after = live(PINNED, image="ember:2") if known else None
        with pytest.raises(Failure, match=f"pinned to {OLD}.*make deploy UNPIN=1"):
            ask(live(PINNED), after, revision(1))

    def test_told_so_it_goes_on(self):
        told = ask(live(PINNED), live(PINNED, image="ember:2"), revision(1), unpin=True).notice
        assert told.startswith(f"{OLD} serves until the new revision is ready")

    def test_what_the_manifests_pin_is_meant_so(self):
        words = {"declared": PINNED}
        before, after = live(PINNED, **words), live(PINNED, image="ember:2", **words)
        assert "As the manifests say" in ask(before, after, revision(1)).notice
        with pytest.raises(Failure, match=r"change them in place of UNPIN=1"):
            ask(before, after, revision(1), unpin=True)

    def test_manifests_that_were_rolled_back_are_not_given_the_traffic(self):
        found = live(PINNED, latest=NEW)
        with pytest.raises(Failure, match=rf"those of {NEW}, which has no traffic: {OLD} has it"):
            ask(found, found, revision(1), unpin=True)

    def test_those_that_serve_are(self):
        found = live(PINNED, initial_scale=1)
        assert ask(found, found, revision(1), unpin=True).initial_scale is None


class TestKubectl:
    def test_it_may_have_options_of_its_own(self):
        assert ran(f"{sys.executable} -c 'import sys; print(sys.argv[1:])'", "a") == "['a']\n"

    def test_a_failure_is_one_line_without_the_log(self):
        told = (
            "E1201 00:22:40.1 12 memcache.go:265] couldn't get current server API group list\n"
            "E1201 00:22:40.2 12 memcache.go:265] couldn't get current server API group list\n"
            "The connection to the server x:9 was refused - did you specify\n"
            "the right host or port?\n"
        )
        assert complaint(told) == (
            "The connection to the server x:9 was refused - did you specify the right host or port?"
        )
        assert complaint("E1201 00:22:40.1 only the log\n") == "E1201 00:22:40.1 only the log"
