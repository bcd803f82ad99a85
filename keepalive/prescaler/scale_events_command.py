"""`ember scale-events`: who changed the scale, when, from what to what and why."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from keepalive import options


@click.command("scale-events")
@options.combined(options.service, options.hpa)
@click.option("--namespace", help="Where it is; else that of the configuration.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON for each.")
def scale_events(service: str, hpa: str | None, namespace: str | None, *, as_json: bool) -> None:
    """List changes of the scale by the autoscalers, the pre-scaler and people, the latest last.

    The pre-scaler notes them with its Lease, in each round; a hundred are kept.
    """
    from keepalive.cluster.client import Cluster
    from keepalive.cluster.lease import peek
    from keepalive.prescaler.config import PrescalerConfig
    from keepalive.prescaler.state import load

    with Cluster.connect(namespace) as cluster:
        text = peek(cluster, PrescalerConfig(service=service, hpa=hpa).lease)
    if text is None:
        click.echo("No pre-scaler has kept a record of it.", err=True)
    for one in load(text).events:
        if as_json:
            click.echo(json.dumps(asdict(one) | {"at": one.at.isoformat()}))
            continue
        change = f"{'new' if one.before is None else one.before} -> {one.after}"
        click.echo(
            f"{one.at:%Y-%m-%d %H:%M:%S}Z  {one.by:9}  {one.of}  {one.what} {change}  {one.why}"
        )
