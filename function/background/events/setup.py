"""From settings to a desk; nothing of it is imported where no events are taken in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from function.extras import needing_redis

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.background.events.dedup import DedupStore
    from function.background.events.processor import EventProcessor
    from function.background.events.sink import Sink
    from function.requests import Swap
    from function.settings import Settings
    from function.storage.storage import Storage

log = logging.getLogger("ember.events")


def desk(
    settings: Settings,
    storage: Storage,
    swap: Swap,
    gate: Callable[[], float | None],
    places: int,
) -> EventProcessor | None:
    """The desk; None where no events are taken in.

    Args:
        settings: the effective settings.
        storage: where photos come from and go to.
        swap: makes a swap.
        gate: see `EventProcessor`.
        places: how many events are worked on at once.

    Raises:
        SettingsError: something for it is missing or makes no sense.
    """
    if settings.events is None:
        return None
    from function.background.events.processor import EventProcessor, ProcessorSettings
    from function.background.events.rules_file import read
    from function.background.events.writer import OutputWriter

    if settings.auth != "none" and not settings.event_senders:
        log.warning("nobody may send events", extra={"setting": "EMBER_EVENT_SENDERS"})
    rules = read(settings.events)
    terms = ProcessorSettings(
        settings.event_ack_s, settings.event_lease_s, settings.queue_limit, places
    )
    making = OutputWriter(storage, rules, swap, settings.max_body_bytes)
    return EventProcessor(making, _ledger(settings), _sink(settings), gate, terms)


def _ledger(settings: Settings) -> DedupStore:
    if settings.redis_url is None:
        from function.background.events.dedup import InMemoryDedupStore

        return InMemoryDedupStore()
    with needing_redis():
        from function.background.events.redis_dedup import RedisDedupStore

        return RedisDedupStore(settings.redis_url, settings.redis_timeout_s)


def _sink(settings: Settings) -> Sink | None:
    if settings.event_sink is None:
        return None
    from function.background.events.sink import Sink

    return Sink(settings.event_sink, dict(settings.event_overrides))
