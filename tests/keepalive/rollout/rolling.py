"""What tests of rollouts share."""

from __future__ import annotations

from keepalive.rollout.config import RolloutConfig
from keepalive.rollout.rollout import Rollout
from tests.kube.objects import REVISIONS, SERVICES

OLD, NEW = "ember-00001", "ember-00002"


class Time:
    """Time that only passes when somebody sleeps; `then` are called one by one as it does.

    Of the half seconds in which Knative takes up a change nobody is told.
    """

    def __init__(self, *then):
        self.now, self.then, self.slept = 0.0, list(then), []

    def sleep(self, seconds):
        self.now += seconds
        if seconds < 1:
            return
        self.slept.append(seconds)
        if self.then:
            self.then.pop(0)()

    def clock(self):
        return self.now


def make(cluster, time=None, said=None, **more):
    time = time or Time()
    config = RolloutConfig(**{"image": "ember:2", "swaps": 1, **more})
    return Rollout(
        cluster, config, (said if said is not None else []).append, time.sleep, time.clock
    )


def split(kube):
    """Percentages by revision."""
    traffic = kube.get(SERVICES, "ember")["status"]["traffic"]
    return {each["revisionName"]: each["percent"] for each in traffic if each["percent"]}


def spied(kube):
    """Each split of the traffic so far, without repetitions."""
    seen = []

    def look(call):
        if call.verb == "get" and call.resource == SERVICES and split(kube) not in seen[-1:]:
            seen.append(split(kube))

    kube.before = look
    return seen


def annotations(kube, name):
    """Those of a revision, without what all of them begin with."""
    found = kube.get(REVISIONS, name)["metadata"]["annotations"]
    return {key.removeprefix("autoscaling.knative.dev/"): value for key, value in found.items()}


def replicas(kube, name):
    return kube.get(REVISIONS, name)["status"].get("actualReplicas", 0)
