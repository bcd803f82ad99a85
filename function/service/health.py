"""Whether a replica is alive and ready, as values; it needs nothing of HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.problems import RetryLaterError
from warmup.phase import Phase

if TYPE_CHECKING:
    from function.service.service import Service
    from warmup.replica import Replica

_WAITING_FOR = {
    Phase.STARTING: "the start of the process",
    Phase.FETCHING: "the download of the models",
    Phase.LOADING: "the models to be loaded",
    Phase.WARMING: "the first inferences",
    Phase.DRAINING: "the requests in work; it will not be ready again",
    Phase.FAILED: "a restart; it will not be ready again",
}


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a replica is alive and ready.

    Attributes:
        replica: has its phase.
        service: knows how long its threads have been at work.
        stuck_s: from when on they count as stuck; 0 means never.
    """

    replica: Replica
    service: Service
    stuck_s: float

    @property
    def stuck(self) -> bool:
        """Whether a thread has been at one step for too long, so that only a restart helps."""
        return 0 < self.stuck_s < self.service.longest_job_s

    @property
    def reason(self) -> str | None:
        """What is wrong, in words; None when nothing is."""
        if not self.stuck:
            return None
        return (
            f"a thread has been at one step for {self.service.longest_job_s:.0f} s;"
            f" EMBER_STUCK_S is {self.stuck_s:g}"
        )

    def alive(self) -> dict[str, Any]:
        """The body of `/healthz`."""
        reason = self.reason
        return {"status": "stuck" if reason else "alive", "reason": reason}

    def readiness(self) -> dict[str, Any]:
        """The body of `/readyz`."""
        replica, engines, reason = self.replica, self.service.engines, self.reason
        return {
            "ready": replica.ready and not reason,
            "cold": self.service.cold,
            "phase": str(replica.phase),
            "waiting_for": reason or _WAITING_FOR.get(replica.phase),
            "models": engines.facts(),
            "trust": self.service.trust.facts(),
            "degraded": list(engines.degraded),
            "last_error": replica.last_error,
        }


def check_open(replica: Replica) -> None:
    """Check that requests are answered.

    Raises:
        Problem: `not_ready`.
    """
    if not replica.serves:
        raise RetryLaterError(
            "not_ready",
            f"The replica is {replica.phase}.",
            again_s=1,
            phase=str(replica.phase),
        )
