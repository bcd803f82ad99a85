"""The subcommands of the keepalive package; `ember` shows them with its own."""

from __future__ import annotations

from typing import Any

import click

from keepalive.doctor.command import doctor
from keepalive.failure import Failure
from keepalive.forecasting.command import forecast
from keepalive.pinger.command import ping
from keepalive.planning.kpa.command import kpa
from keepalive.planning.search.command import plan
from keepalive.planning.simulation.command import simulate
from keepalive.prescaler.command import prescale
from keepalive.prescaler.scale_events_command import scale_events
from keepalive.rollout.command import rollout
from keepalive.rollout.preflight_command import preflight


class CommandGroup(click.Group):
    """Commands of which a `Failure` becomes one line and its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is named."""
        try:
            return super().invoke(ctx)
        except Failure as failure:
            click.echo(f"Error: {failure}", err=True)
            ctx.exit(failure.exit_code)


commands = CommandGroup(
    "keepalive",
    commands=[
        ping,
        prescale,
        scale_events,
        forecast,
        kpa,
        simulate,
        plan,
        rollout,
        preflight,
        doctor,
    ],
    help="What keeps replicas warm.",
)
