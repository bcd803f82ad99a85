"""The subcommands of the keepalive package; `ember` shows them beside the others."""

from __future__ import annotations

import click

from keepalive.doctor.command import doctor
from keepalive.forecasting.command import forecast
from keepalive.kpa.command import kpa
from keepalive.pinger.command import ping
from keepalive.plan.command import plan
from keepalive.prescaler.command import prescale
from keepalive.rollout.command import rollout
from keepalive.simulation.command import simulate

commands = click.Group(
    "keepalive",
    commands=[ping, prescale, forecast, kpa, simulate, plan, rollout, doctor],
    help="What keeps replicas warm.",
)
