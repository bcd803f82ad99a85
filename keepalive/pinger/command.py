"""`ember ping`."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

import click

from keepalive import options
from keepalive.failure import Exit
from keepalive.pinger import metrics as ping_metrics
from keepalive.pinger import ping as pinging
from keepalive.pinger import swap as swapping
from keepalive.pinger.check import PingOutcome, PingResult, check

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_CODES = {
    PingOutcome.WELL: 0,
    PingOutcome.UNAVAILABLE: Exit.UNAVAILABLE,
    PingOutcome.BUSY: Exit.AGAIN,
    PingOutcome.SLOW: Exit.AGAIN,
    PingOutcome.WRONG: Exit.WRONG,
}


@click.command()
@click.argument("url", default="http://127.0.0.1:8080")
@options.option(
    "--timeout",
    type=options.SECONDS,
    default=5.0,
    help="Seconds to wait for an answer.",
)
@options.option(
    "--wait",
    type=click.FloatRange(0),
    default=0.0,
    help="Seconds that it may take to become ready, e.g. when it starts from zero.",
)
@click.option("--swap", is_flag=True, help="Also ask for a tiny swap, and look at the result.")
@click.option(
    "--max-latency",
    type=options.SECONDS,
    help="The most seconds that the swap, or without one the answer, may take.",
)
@options.header(
    "A header to send, e.g. 'Authorization: Bearer ${TOKEN}' with the variable TOKEN; may be"
    " repeated."
)
@options.option(
    "--jitter",
    type=click.FloatRange(0),
    default=0.0,
    help="Wait up to so many seconds first, so that not all pings come at once.",
)
@options.publisher
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON, whatever happens.")
@click.pass_context
def ping(
    context: click.Context,
    url: str,
    *,
    timeout: float,
    wait: float,
    max_latency: float | None,
    headers: dict[str, str],
    swap: bool,
    jitter: float,
    publisher: Callable[..., None] | None,
    as_json: bool,
) -> None:
    """Ask the server at URL whether it is ready, and with --swap, whether it swaps.

    Behind a load balancer a ping reaches one replica, whichever that is. It tells that users are
    served and can start a service from zero; it keeps no replica warm, as each does that itself.

    Exit codes: 0 all is well, 69 unreachable or not ready, 74 the metrics could not be told, 75 too
    slow or too busy, 76 the swap is wrong.
    """
    try:
        address = pinging.readyz(url)
        swaps_at = swapping.address(address) if swap else None
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="URL") from None
    time.sleep(random.uniform(0, jitter))  # noqa: S311
    found = check(
        address,
        timeout_s=timeout,
        wait_s=wait,
        swapping=swaps_at,
        most_s=max_latency,
        headers=headers,
    )
    if as_json:
        click.echo(json.dumps(found.plain()))
    else:
        click.echo(_line(found), err=found.outcome is not PingOutcome.WELL)
    if publisher:
        registry = ping_metrics.registry(found, time.time())
        publisher(registry, job="ember-ping", about={"instance": address})
    context.exit(EXIT_CODES[found.outcome])


def _line(found: PingResult) -> str:
    """For people."""
    parts = []
    if found.answer:
        parts.append(f"{found.answer.phase} ({found.answer.latency_s * 1e3:.1f} ms)")
    if swapped := found.swapped:
        identity = f"identity distance {swapped.before:.2f} to {swapped.after:.2f}"
        parts.append(f"swapped ({swapped.latency_s * 1e3:.0f} ms, {identity})")
        parts += [f"warning {code}" for code in swapped.warnings]
        parts += [f"{model} degraded" for model in swapped.degraded]
    if found.reason:
        parts.append(found.reason)
    mark = "" if found.outcome is PingOutcome.WELL else "Error: "
    return f"{mark}{found.url}: {', '.join(parts)}"
