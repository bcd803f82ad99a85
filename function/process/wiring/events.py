"""What takes events in, from settings; nothing of it is imported where no events are taken in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from function.extras import needing_redis

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.background.events.dedup import DedupStore
    from function.background.events.processor import EventProcessor
    from function.background.events.sink import EventSink
    from function.requests import Swap
    from function.settings.access import AccessSettings, RedisSettings
    from function.settings.background import EventSettings
    from function.settings.requests import RequestSettings
    from function.storage.storage import Storage

log = logging.getLogger("ember.events")


def build_event_processor(
    events: EventSettings,
    access: AccessSettings,
    redis: RedisSettings,
    requests: RequestSettings,
    *,
    storage: Storage,
    swap: Swap,
    gate: Callable[[], float | None],
    slots: int,
) -> EventProcessor | None:
    """What takes events in; None where none are.

    Args:
        events: the rules, and how long things may take.
        access: whether senders have to say who they are.
        redis: keeps which events are done, where there is one.
        requests: how large photos may be and how many events may wait.
        storage: where photos come from and go to.
        swap: makes a swap.
        gate: gives for how many seconds nothing more is to be begun; None for not at all.
        slots: how many events are worked on at once.

    Raises:
        SettingsError: something for it is missing or makes no sense.
    """
    if events.events is None:
        return None
    from function.background.events.processor import EventProcessor, ProcessorSettings
    from function.background.events.rules_file import read
    from function.background.events.writer import OutputWriter

    if access.auth != "none" and not events.event_senders:
        log.warning("nobody may send events", extra={"setting": "EMBER_EVENT_SENDERS"})
    terms = ProcessorSettings(events.event_ack_s, events.event_lease_s, requests.queue_limit, slots)
    writer = OutputWriter(storage, read(events.events), swap, requests.max_body_bytes)
    return EventProcessor(writer, _dedup_store(redis), _sink(events), gate, terms)


def _dedup_store(redis: RedisSettings) -> DedupStore:
    from function.background.events.dedup import EVENTS, DedupStore

    if redis.redis_url is None:
        from function.background.in_memory import InMemoryRecords

        return DedupStore(InMemoryRecords())
    with needing_redis():
        from function.background.redis_records import RedisRecords

        return DedupStore(RedisRecords(redis.redis_url, redis.redis_timeout_s, EVENTS))


def _sink(events: EventSettings) -> EventSink | None:
    if events.event_sink is None:
        return None
    from function.background.events.sink import EventSink

    return EventSink(events.event_sink, dict(events.event_overrides))
