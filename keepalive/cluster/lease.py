"""The Lease: at most one pre-scaler acts at a time, and what it remembers is kept with it.

A worked example: A takes it at 12:00:00 for 150 s and renews it at 12:01:00. B, which asks at
12:02:00, is refused until 12:03:30. If A hangs from 12:01:10 on, B takes it at 12:03:31; when A
wakes up and wants to keep what it has decided, the Lease has another version than the one that A
has read, so A has lost it, and nothing of A's is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from keepalive.cluster.client import Cluster, Conflict, Missing, Resource
from keepalive.cluster.target import annotations_of

if TYPE_CHECKING:
    from typing import Self

MEMORY = "ember.dev/prescale"
_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


class LeaseTaken(Exception):
    """Another pre-scaler has the Lease; the text says which, and until when."""


@dataclass(slots=True)
class Lease:
    """A Lease that is ours until it ends.

    Attributes:
        cluster: it is in.
        name: of the Lease.
        holder: our name.
        duration: how long it is ours without being renewed.
        memory: what the last holder has left.
        continued: whether it was ours before it was taken, so that nobody else has acted since.
    """

    cluster: Cluster
    name: str
    holder: str
    duration: timedelta
    memory: str | None = None
    continued: bool = False
    _object: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def take(
        cls, cluster: Cluster, name: str, holder: str, duration: timedelta, now: datetime
    ) -> Self:
        """Take it.

        Raises:
            LeaseTaken: somebody else has it.
            Failure: it is not allowed, or nothing answers.
        """
        lease = cls(cluster, name, holder, duration)
        try:
            lease._taken(now)
        except Conflict:
            raise LeaseTaken(f"another pre-scaler has just taken the Lease {name}") from None
        return lease

    def renew(self, memory: str, now: datetime, *, release: bool) -> None:
        """Keep what is to be remembered, and the Lease, or let it go.

        Raises:
            LeaseTaken: somebody else has it meanwhile, as it was not renewed in time.
            Failure: it is not allowed, or nothing answers.
        """
        spec = {**self._object["spec"], "renewTime": now.astimezone(UTC).strftime(_FORM)}
        if release:
            spec["holderIdentity"] = ""
        metadata = self._object["metadata"]
        annotations = {**annotations_of(self._object), MEMORY: memory}
        changed = {
            **self._object,
            "metadata": {**metadata, "annotations": annotations},
            "spec": spec,
        }
        try:
            self._object = self.cluster.replace(Resource.LEASE, self.name, changed)
        except (Conflict, Missing):
            raise LeaseTaken(
                f"the Lease {self.name} was lost: it took longer than {self.duration.seconds} s"
            ) from None
        self.memory = memory

    def _taken(self, now: datetime) -> None:
        at = now.astimezone(UTC).strftime(_FORM)
        mine = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": round(self.duration.total_seconds()),
            "acquireTime": at,
            "renewTime": at,
        }
        try:
            found = self.cluster.get(Resource.LEASE, self.name)
        except Missing:
            made = {"metadata": {"name": self.name}, "spec": {**mine, "leaseTransitions": 0}}
            self._object = self.cluster.create(Resource.LEASE, made)
            return
        spec = found.get("spec") or {}
        other = spec.get("holderIdentity") or self.holder
        if other != self.holder and (until := _until(spec)) > now:
            raise LeaseTaken(f"{other} has the Lease {self.name} until {until:%H:%M:%S} UTC")
        self.memory = annotations_of(found).get(MEMORY)
        self.continued = spec.get("holderIdentity") == self.holder
        changes = (spec.get("leaseTransitions") or 0) + (other != self.holder)
        found["spec"] = {**mine, "leaseTransitions": changes}
        self._object = self.cluster.replace(Resource.LEASE, self.name, found)


def peek(cluster: Cluster, name: str) -> str | None:
    """What the last holder has left, without taking the Lease."""
    try:
        return annotations_of(cluster.get(Resource.LEASE, name)).get(MEMORY)
    except Missing:
        return None


def _until(spec: dict[str, Any]) -> datetime:
    try:
        renewed = datetime.strptime(spec["renewTime"], _FORM).replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return datetime.min.replace(tzinfo=UTC)
    return renewed + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
