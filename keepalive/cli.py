"""The subcommands of the keepalive package; `ember` shows them beside the others."""

from __future__ import annotations

from typing import Any

import click

from keepalive.doctor.command import doctor
from keepalive.failure import Failure
from keepalive.forecasting.command import forecast
from keepalive.kpa.command import kpa
from keepalive.pinger.command import ping
from keepalive.plan.command import plan
from keepalive.prescaler.command import prescale
from keepalive.prescaler.scale_command import scale_events
from keepalive.rollout.command import rollout
from keepalive.rollout.preflight_command import preflight
from keepalive.simulation.command import simulate


class Told(click.Group):
    """Commands whose failures are told in one line, with the exit code that they have."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is named."""
        try:
            return super().invoke(ctx)
        except Failure as failure:
            click.echo(f"Error: {failure}", err=True)
            ctx.exit(failure.exit_code)


commands = Told(
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
