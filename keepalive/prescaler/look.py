"""What a round is decided on: what there is and what is to come, as Prometheus tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepalive.failure import Failure
from keepalive.forecasting.forecast import HISTORY_WEEKS, Forecaster
from keepalive.prescaler import signals

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.forecasting.forecast import Forecast
    from keepalive.prescaler.pool import Model, Node
    from keepalive.prescaler.prescale import Wanted
    from keepalive.prescaler.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Seen:
    """What Prometheus tells.

    Attributes:
        model: the model layer.
        node: the node layer.
        forecast: what is to come; None when data are too thin.
        blind: why nothing is known of the replicas, if it is not.
        unforeseen: why the forecast could not be had; not why there is none.
    """

    model: Model | None = None
    node: Node | None = None
    forecast: Forecast | None = None
    blind: str | None = None
    unforeseen: str | None = None


def look(now: datetime, wanted: Wanted, schedule: Schedule) -> Seen:
    """What there is and what is to come; a Prometheus that does not answer is no reason to stop."""
    if (prometheus := wanted.prometheus) is None:
        return Seen()
    forecast = blind = unforeseen = None
    try:
        model = signals.model(prometheus, wanted.matchers)
        node = signals.node(prometheus, wanted.node_matchers)
    except Failure as failure:
        return Seen(blind=str(failure))
    try:
        points = signals.history(prometheus, wanted.matchers, now, HISTORY_WEEKS)
        known = Forecaster(points, schedule.timezone, schedule.lead, schedule.events)
        forecast = known.forecast(now)
    except Failure as failure:
        unforeseen = f"There is no forecast. {failure}"
    if model is None:
        matchers = f" with {wanted.matchers}" if wanted.matchers else ""
        blind = (
            f"Prometheus at {prometheus.url} knows no replica{matchers}: see that it scrapes the"
            " pods, and use --selector."
        )
    return Seen(model, node, forecast, blind, unforeseen)
