"""The end of a pin: the latest revision gets the traffic again, where nothing moves by that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.cluster.pin import named
from keepalive.failure import Exit, Failure
from keepalive.rollout import replicas, traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepalive.rollout.live import LiveService


def unpin(live: LiveService, say: Callable[[str], None]) -> None:
    """Have the latest revision take the traffic, as after any update, if it is who has it now.

    Raises:
        Failure: another one would get the traffic, unproven; the text says how to prove it.
    """
    service = live.settled()
    if made := traffic.progress(service):
        raise Failure(
            f"A rollout of {made.image} is under way: finish it with --image {made.image}, or end"
            " it with --abort.",
            Exit.CONFIG,
        )
    if not named(service):
        say(f"The traffic of {live.name} is not pinned: its latest revision gets it.")
        return
    serving, latest = traffic.sole(service), traffic.latest(service)
    if {serving} != {latest, service["status"].get("latestReadyRevisionName")}:
        images = (traffic.image(live.revision(name)) for name in (latest, serving))
        retry, known = (f"`ember rollout --image {image}`" for image in images)
        raise Failure(
            f"{serving} has the traffic of {live.name}, and unpinned {latest} would get it, which"
            f" nobody has proven. Prove it with {retry}, or make the image that serves the latest"
            f" one again with {known}; either leaves nothing pinned.",
            Exit.CONFIG,
        )
    live.change(lambda found: traffic.unpinned(live.same(service, found)))
    live.settled(lambda found: traffic.percents(found) == {serving: replicas.WHOLE}, "the traffic")
    say(f"{serving} has all traffic; the next revision gets it when it is ready")
