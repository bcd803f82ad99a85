"""Metrics of what has ended before anybody could scrape it: to a Pushgateway, or into a file.

The file is for the textfile collector of a node exporter; its name has to end in `.prom`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.failure import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from prometheus_client import CollectorRegistry

_TIMEOUT_S = 5.0


def publish(
    registry: CollectorRegistry,
    *,
    job: str,
    about: Mapping[str, str],
    file: Path | None = None,
    gateway: str | None = None,
) -> None:
    """Publish metrics; what a Pushgateway has of others, or of before, stays there.

    Raises:
        Failure: it did not work.
    """
    from prometheus_client import pushadd_to_gateway, write_to_textfile

    if file:
        try:
            write_to_textfile(str(file), registry)
        except OSError as error:
            raise Failure(
                f"The metrics cannot be written to {file}: {error.strerror}.", Exit.CANNOT_WRITE
            ) from None
    if gateway:
        try:
            pushadd_to_gateway(gateway, job, registry, dict(about), _TIMEOUT_S)
        except (OSError, ValueError) as error:
            raise Failure(
                f"The metrics cannot be pushed to {gateway}: {getattr(error, 'reason', error)}. See"
                " that it is the address of a Pushgateway.",
                Exit.CANNOT_WRITE,
            ) from None
