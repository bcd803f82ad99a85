"""The Service and its revisions as they are in the cluster: read when they are so, and changed."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.cluster import knative
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
        return knative.read_service(self.cluster, self.name)

    def settled(
        self, fits: Callable[[dict[str, Any]], bool] = lambda _: True, what: str = "the last change"
    ) -> dict[str, Any]:
        """The Service, once its status is that of its last change.

        Args:
            fits: what else has to hold of it.
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

        def attempt() -> None:
            service = self.service()
            if why := held(service):
                raise Failure(f"{why}; remove it to go on.", Exit.CONFIG)
            version = service["metadata"]["resourceVersion"]
            try:
                self.cluster.patch(Resource.SERVICE, self.name, patch(service), version=version)
            except Missing:  # reading it again says so
                raise Conflict from None

        self._retried(self.name, attempt)

    def set_floor(self, name: str, wanted: Callable[[int], int]) -> None:
        """Give a revision another floor, which replaces none of its pods.

        Args:
            name: of the revision; one that is gone is passed over.
            wanted: the floor to have, from the one that it has.
        """

        def attempt() -> None:
            revision = self.revision(name)
            before = replicas.floor(revision)
            count = replicas.bounded(wanted(before), annotations_of(revision))
            if count != before:
                version = revision["metadata"]["resourceVersion"]
                patch = replicas.floor_patch(revision, count)
                self.cluster.patch(Resource.REVISION, name, patch, version=version)

        with suppress(Missing):
            self._retried(name, attempt)

    def _retried(self, name: str, attempt: Callable[[], None]) -> None:
        """Read and change, until nobody changes it in between."""
        for _ in range(_TRIES):
            with suppress(Conflict):
                attempt()
                return
        raise Failure(f"Somebody else keeps changing {name}.", Exit.AGAIN)
