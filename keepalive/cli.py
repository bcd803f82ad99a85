"""The subcommands of the keepalive package; `ember` shows them beside the others."""

from __future__ import annotations

import click

from keepalive import ping as pinging

UNAVAILABLE = 69


class NotReady(click.ClickException):
    """The server does not take traffic."""

    exit_code = UNAVAILABLE


@click.command()
@click.argument("url", default="http://127.0.0.1:8080")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=5.0,
    show_default=True,
    help="Seconds to wait for an answer.",
)
def ping(url: str, timeout: float) -> None:
    """Ask the server at URL whether it is ready: exit code 0 when it is, else 69."""
    try:
        address = pinging.readyz(url)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="URL") from None
    try:
        answer = pinging.ping(address, timeout)
    except pinging.Unreachable as error:
        raise NotReady(f"{address}: {error}.") from None
    line = f"{address}: {answer.phase} ({answer.latency_s * 1e3:.1f} ms)"
    if not answer.ready:
        waiting = f", waiting for {answer.waiting_for}" if answer.waiting_for else ""
        raise NotReady(f"{line}{waiting}")
    click.echo(line)


commands = click.Group("keepalive", commands=[ping], help="What keeps replicas warm.")
