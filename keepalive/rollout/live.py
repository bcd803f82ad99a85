"""The Service and its revisions as they are in the cluster: read when they are so, and changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.cluster.client import Conflict, Missing, Resource
from keepalive.cluster.readiness import condition
from keepalive.cluster.target import annotations_of, held
from keepalive.failure import Exit, Failure
from keepalive.rollout import replicas, traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepalive.cluster.client import Cluster

_TRIES = 5
_SETTLE_S = 0.5
Patch = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LiveService:
    """A Knative Service in a cluster.

    Attributes:
        cluster: it is in.
        name: its own.
        wait_s: how long Knative may take to take up a change.
        sleep: waits for some seconds.
        clock: seconds, never going back.
    """

    cluster: Cluster
    name: str
    wait_s: float
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def service(self) -> dict[str, Any]:
        """The Service; its status may be that of an earlier change.

        Raises:
            Failure: there is none.
        """
        try:
            return self.cluster.get(Resource.SERVICE, self.name)
        except Missing:
            raise Failure(
                f"There is no Knative Service {self.name} in the namespace"
                f" {self.cluster.namespace}: use --service and --namespace.",
                Exit.CONFIG,
            ) from None

    def settled(
        self, fits: Callable[[dict[str, Any]], bool] = lambda _: True, what: str = "the last change"
    ) -> dict[str, Any]:
        """The Service, once its status is that of its last change.

        Args:
            fits: what it has to be like besides.
            what: is waited for, in words.

        Raises:
            Failure: it is not so in time.
        """
        end = self.clock() + self.wait_s
        while True:
            service = self.service()
            if traffic.reconciled(service) and fits(service):
                return service
            if self.clock() >= end:
                why = condition(service)[1]
                raise Failure(
                    f"Knative has not taken up {what} of {self.name} within {self.wait_s:g} s"
                    f"{f' ({why})' if why else ''}: see that its controllers in knative-serving"
                    " run. Then run the same command again.",
                    Exit.AGAIN,
                )
            self.sleep(_SETTLE_S)

    def revision(self, name: str) -> dict[str, Any]:
        """One of its revisions, or `Missing`."""
        return self.cluster.get(Resource.REVISION, name)

    def same(self, read: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        """The Service as it is found, if it asks for what it did when it was read.

        Raises:
            Failure: it asks for something else.
        """
        if found["metadata"]["generation"] != read["metadata"]["generation"]:
            raise Failure(
                f"Somebody has just changed {self.name}. Run the same command again.", Exit.AGAIN
            )
        return found

    def change(self, patch: Callable[[dict[str, Any]], Patch]) -> None:
        """Patch the Service as it is, and again when somebody else was faster."""
        for _ in range(_TRIES):
            service = self.service()
            if why := held(service):
                raise Failure(f"{why}; remove it to go on.", Exit.CONFIG)
            version = service["metadata"]["resourceVersion"]
            try:
                self.cluster.patch(Resource.SERVICE, self.name, patch(service), version=version)
            except (Conflict, Missing):
                continue  # a Service that is gone is told of when it is read again
            return
        raise Failure(f"Somebody else keeps changing {self.name}.", Exit.AGAIN)

    def set_floor(self, name: str, wanted: Callable[[int], int]) -> None:
        """Give a revision another floor, which replaces none of its pods.

        Args:
            name: of the revision; one that is gone is passed over.
            wanted: the floor to have, from the one that it has.
        """
        for _ in range(_TRIES):
            try:
                revision = self.revision(name)
                count = replicas.bounded(wanted(replicas.floor(revision)), annotations_of(revision))
                if count == replicas.floor(revision):
                    return
                version = revision["metadata"]["resourceVersion"]
                patch = replicas.floor_patch(revision, count)
                self.cluster.patch(Resource.REVISION, name, patch, version=version)
            except Missing:
                return
            except Conflict:
                continue
            return
        raise Failure(f"Somebody else keeps changing {name}.", Exit.AGAIN)
