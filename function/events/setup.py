"""From settings to a desk; nothing of it is imported where no events are taken in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from function.extras import needing_redis

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.events.desk import Desk
    from function.events.ledger import Ledger
    from function.events.sink import Sink
    from function.orders import Swap
    from function.settings import Settings
    from function.storage.storage import Storage

log = logging.getLogger("ember.events")


def desk(
    settings: Settings,
    storage: Storage,
    swap: Swap,
    gate: Callable[[], float | None],
    places: int,
) -> Desk | None:
    """The desk; None where no events are taken in.

    Args:
        settings: the effective settings.
        storage: where photos come from and go to.
        swap: makes a swap.
        gate: see `Desk`.
        places: how many events are worked on at once.

    Raises:
        SettingsError: something for it is missing or makes no sense.
    """
    if settings.events is None:
        return None
    from function.events.desk import Desk, Terms
    from function.events.making import Making
    from function.events.reading import read

    if settings.auth != "none" and not settings.event_senders:
        log.warning("nobody may send events", extra={"setting": "EMBER_EVENT_SENDERS"})
    rules = read(settings.events)
    terms = Terms(settings.event_ack_s, settings.event_lease_s, settings.queue_limit, places)
    making = Making(storage, rules, swap, settings.max_body_bytes)
    return Desk(making, _ledger(settings), _sink(settings), gate, terms)


def _ledger(settings: Settings) -> Ledger:
    if settings.redis_url is None:
        from function.events.ledger import Memory

        return Memory()
    with needing_redis():
        from function.events.shared import Shared

        return Shared(settings.redis_url, settings.redis_timeout_s)


def _sink(settings: Settings) -> Sink | None:
    if settings.event_sink is None:
        return None
    from function.events.sink import Sink

    return Sink(settings.event_sink, dict(settings.event_overrides))
