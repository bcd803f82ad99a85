"""What a round is decided on: what replicas and GPUs show, and the demand to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepalive.failure import Failure
from keepalive.forecasting.demand import DemandHistory
from keepalive.forecasting.forecast import HISTORY_WEEKS, Forecaster
from keepalive.prescaler import signals

if TYPE_CHECKING:
    from datetime import datetime

    from keepalive.forecasting.forecast import Forecast
    from keepalive.prescaler.config import PrescalerConfig
    from keepalive.prescaler.pool import ModelLayer, NodeLayer
    from keepalive.prescaler.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Observation:
    """What Prometheus knows.

    Attributes:
        model: the model layer.
        node: the node layer.
        forecast: of the demand; None when data are too thin.
        pool_failure: why nothing is known of the replicas; None when something is.
        forecast_failure: why the forecast could not be made; None also when data are too thin.
    """

    model: ModelLayer | None = None
    node: NodeLayer | None = None
    forecast: Forecast | None = None
    pool_failure: str | None = None
    forecast_failure: str | None = None


class PoolObserver:
    """Asks Prometheus, and keeps the history of demand from one round to the next."""

    def __init__(self, config: PrescalerConfig) -> None:
        self._config = config
        self._history: DemandHistory | None = None
        self._forecaster: Forecaster | None = None
        self._inputs: object = None

    def forget(self) -> None:
        """Read the whole history of demand in the next round."""
        self._history = None

    def observe(self, now: datetime, schedule: Schedule) -> Observation:
        """What there is and what is to come; a Prometheus that does not answer stops nothing."""
        config = self._config
        if (prometheus := config.prometheus) is None:
            return Observation()
        try:
            model = signals.model(prometheus, config.matchers)
            node = signals.node(prometheus, config.node_matchers)
        except Failure as failure:
            return Observation(pool_failure=str(failure))
        forecast = pool_failure = forecast_failure = None
        if self._history is None:
            self._history = DemandHistory(prometheus, config.matchers, HISTORY_WEEKS)
        try:
            forecast = self._fitted(self._history, now, schedule).forecast(now)
        except Failure as failure:
            forecast_failure = f"There is no forecast. {failure}"
        if model is None:
            matchers = f" with {config.matchers}" if config.matchers else ""
            pool_failure = (
                f"Prometheus at {prometheus.url} knows no replica{matchers}: see that it scrapes"
                " the pods, and use --selector."
            )
        return Observation(model, node, forecast, pool_failure, forecast_failure)

    def _fitted(self, history: DemandHistory, now: datetime, schedule: Schedule) -> Forecaster:
        """The forecaster of the demand until now: that of the round before if nothing is new."""
        events = tuple((event.begins, event.ends) for event in schedule.events)
        inputs = (history.read(now), schedule.timezone, schedule.lead, events)
        if self._forecaster is None or inputs != self._inputs:
            self._inputs, self._forecaster = inputs, Forecaster(*inputs)
        return self._forecaster
