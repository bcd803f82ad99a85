"""`ember preflight`."""

from __future__ import annotations

import click

from keepalive import options
from keepalive.rollout.preflight import PreflightRequest, inspect, patch


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@options.service
@options.option("--namespace", "-n", default="ember", help="Its namespace.")
@options.option("--kubectl", default="kubectl", help="Which kubectl to run.")
@click.option("--unpin", is_flag=True, help="Go on although the traffic is pinned.")
@click.option(
    "--replicas",
    type=click.IntRange(1),
    help="Replicas that a new revision starts with; by default as many as serve now.",
)
def preflight(
    folder: str,
    *,
    service: str,
    namespace: str,
    kubectl: str,
    unpin: bool,
    replicas: int | None,
) -> None:
    """Before the kustomization in FOLDER is applied: what it does not say and the cluster knows.

    Writes an item for its `patches`, so that a new revision starts with as many replicas as serve
    now, and nothing where that is so already. `make deploy` asks it; it only reads.

    Exit codes: 0 go on, 69 the cluster does not answer, 78 the traffic is pinned, or a rollout is
    under way.
    """
    asked = PreflightRequest(service, namespace, folder, kubectl, unpin, replicas)
    found = inspect(asked)
    if found.notice:
        click.echo(found.notice, err=True)
    if item := patch(service, found):
        click.echo(item)
