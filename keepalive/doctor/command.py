"""`ember doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keepalive.doctor import config, pairs, reading
from keepalive.doctor.doctor import ObjectFinding, examine, knative, named, patches
from keepalive.failure import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepalive.doctor.doctor import Report


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="FILE|FOLDER|-…")
@click.option(
    "--config",
    "files",
    multiple=True,
    metavar="FILE",
    help="A file with config-features, config-autoscaler or config-defaults; may be repeated.",
)
@click.option(
    "--cluster", is_flag=True, help="Read these from the cluster, with kubectl, and what is there."
)
@click.option("--context", help="The context of kubectl to use with --cluster.")
@click.option("--kubectl", default="kubectl", show_default=True, help="Which kubectl to run.")
@click.option(
    "--manifests-only",
    is_flag=True,
    help="Only what is wrong with the manifests, not what the cluster has to allow.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.pass_context
def doctor(
    context_: click.Context,
    places: tuple[str, ...],
    *,
    files: tuple[str, ...],
    cluster: bool,
    context: str | None,
    kubectl: str,
    manifests_only: bool,
    as_json: bool,
) -> None:
    """Say what Knative would refuse of the Services in manifests, or silently not understand.

    A FOLDER with a kustomization is rendered. Without --config and --cluster a new cluster's own
    configuration is assumed, with every flag off. With --cluster the Services and Revisions that
    are there are looked at, too: traffic that is pinned, annotations that restart pods.

    Exit codes: 0 all is well, 65 something is not, 69 something cannot be read. Warnings do not
    count.
    """
    objects = [one for place in places for one in reading.documents(place, kubectl)]
    configured = [one for file in files for one in reading.documents(file, kubectl)]
    there: list[dict[str, Any]] = []
    if cluster:
        configured += reading.cluster(kubectl, context)
        spaces = (named(one)[0] for one in knative(objects))
        there = reading.live(spaces, kubectl, context)
    try:
        allowed = config.read(configured)
    except ValueError as error:
        raise reading.UnreadableManifest(str(error)) from None
    found = examine(objects, allowed, there)
    together = [one for place in places for one in _together(Path(place))]
    found = replace(found, findings=(*found.findings, *together))
    if manifests_only:
        found = replace(found, missing=())
    if as_json:
        click.echo(json.dumps({"well": found.well, **asdict(found)}, indent=2))
    else:
        _tell(found)
    context_.exit(0 if found.well else Exit.BAD_INPUT)


def _together(place: Path) -> Iterator[ObjectFinding]:
    """Whether the components of a kustomization go together, if it has any."""
    if names := pairs.components(place):
        yield ObjectFinding(f"Components of {place}", tuple(pairs.complaints(names)))


def _tell(found: Report) -> None:
    """For people."""
    if not found.findings:
        click.echo("There is no Knative Service to look at.")
    for finding in found.findings:
        click.echo(f"{finding.name}: {'wrong' if finding.wrong else 'well'}")
        for line in finding.wrong:
            click.echo(f"  - {line}")
        for line in finding.warned:
            click.echo(f"  - warning: {line}")
    if found.missing:
        click.echo("The cluster has to allow it; as its administrator, in knative-serving:")
        for need in found.missing:
            click.echo(f"  - {need}")
        for command in patches(found.missing):
            click.echo(command)
