"""The command `ember`: the subcommands of all packages under one name.

A package is imported only when one of its subcommands runs, and click only when there is one to
run, so that every image needs no more than what it does.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from function.exits import Exit

COMMANDS = {
    "serve": ("function.cli.serve:serve", "Serve over HTTP, with a page to try it."),
    "demo": ("function.cli.demo:demo", "Swap two sample photos, and show what comes out."),
    "swap": ("function.cli.swap:swap", "Put a face onto one photo, or all of a folder."),
    "faces": ("function.cli.faces:faces", "List the faces of a photo, or draw them."),
    "verify": ("function.cli.verify:verify", "Say of a file whether it says that it is a swap."),
    "page": ("function.cli.page:page", "Put the page where it does not sleep."),
    "price": ("function.cli.price:price", "Say how many tokens a swap costs."),
    "keys": ("function.cli.keys:keys", "Make API keys for callers."),
    "c2pa": ("function.cli.c2pa:c2pa", "Make certificates to try signing with."),
    "events": ("function.cli.events:events", "Explain what would be done with an event."),
    "deny": ("function.cli.deny:deny", "Tend the list of people who are not swapped."),
    "consent": ("function.cli.consent:consent", "Tend the list of people who have agreed."),
    "jobs": ("function.cli.jobs:jobs", "List, show and delete the jobs of a Redis."),
    "audit": ("function.cli.audit:audit", "Check and search the account of what was done."),
    "forget": ("function.cli.forget:forget", "Delete all that is stored of a caller."),
    "coldstart": ("function.cli.coldstart:coldstart", "Show where the time goes until ready."),
    "config": ("function.cli.config:config", "Show the settings and where each came from."),
    "ping": ("keepalive.pinger.command:ping", "Ask a server whether it is ready, and swaps."),
    "rollout": ("keepalive.rollout.command:rollout", "Give a new image the traffic, step by step."),
    "preflight": (
        "keepalive.rollout.preflight_command:preflight",
        "Say what a deployment has to know of the cluster first.",
    ),
    "doctor": ("keepalive.doctor.command:doctor", "Say what Knative would refuse of manifests."),
    "prescale": (
        "keepalive.prescaler.command:prescale",
        "Raise and lower the warm floor ahead of demand.",
    ),
    "scale-events": (
        "keepalive.prescaler.scale_events_command:scale_events",
        "Say who changed the scale, when and why.",
    ),
    "forecast": (
        "keepalive.forecasting.command:forecast",
        "Say what demand to expect; try how well that works.",
    ),
    "kpa": (
        "keepalive.planning.kpa.command:kpa",
        "Show what Knative's autoscaler would do with a load.",
    ),
    "simulate": (
        "keepalive.planning.simulation.command:simulate",
        "Simulate how a service scales, and what that costs.",
    ),
    "plan": (
        "keepalive.planning.search.command:plan",
        "Find the cheapest settings that keep an objective.",
    ),
    "prefetch": ("function.cli.prefetch:prefetch", "Bring all models into the store, proven."),
    "engines": ("function.cli.engines:engines", "Make, list and check TensorRT plans."),
    "models": ("function.cli.models:models", "Import, check and convert models; tend the store."),
}
"""Each subcommand: where it is, as "module:attribute", and what `ember --help` says about it."""


def main() -> NoReturn:
    """Run `ember` with the words of the command line, and exit."""
    try:
        from function.cli.lazy import run

        sys.exit(run(COMMANDS))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
