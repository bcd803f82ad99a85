"""What a pre-scaler is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepalive.prometheus import Prometheus


@dataclass(frozen=True, slots=True)
class PrescalerConfig:
    """What a pre-scaler is for.

    Attributes:
        service: the Knative Service.
        hpa: the HorizontalPodAutoscaler in place of it; None for the Service.
        prometheus: who tells what there is; None looks at the schedule alone.
        matchers: of the replicas' metrics, in PromQL.
        node_matchers: of DCGM's metrics, in PromQL.
        objective_s: seconds within which 95 % of swaps should be answered.
        per_replica: requests that a replica is meant to have at once; None for the autoscaler's.
        gpus: of one replica; None for what its pods ask for.
        knative: the version of Knative Serving; None to look it up.
    """

    service: str = "ember"
    hpa: str | None = None
    prometheus: Prometheus | None = None
    matchers: str = ""
    node_matchers: str = ""
    objective_s: float | None = None
    per_replica: float | None = None
    gpus: int | None = None
    knative: str | None = None

    @property
    def lease(self) -> str:
        """The name of the Lease."""
        return f"ember-prescale-{self.hpa or self.service}"
