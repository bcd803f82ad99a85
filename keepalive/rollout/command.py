"""`ember rollout`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from keepalive import options
from keepalive.cluster.client import Cluster
from keepalive.failure import Exit
from keepalive.rollout.config import RevisionRejected, RolloutConfig
from keepalive.rollout.judge import MORE_ERRORS, SLOWER, JudgeLimits
from keepalive.rollout.rollout import Rollout

if TYPE_CHECKING:
    from keepalive.prometheus import Prometheus


def _steps(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        steps = tuple(int(part) for part in text.split(","))
    except ValueError:
        steps = ()
    if not steps or steps[-1] != 100 or list(steps) != sorted({*steps}) or steps[0] < 1:
        raise click.BadParameter("They look like 5,25,50,100: rising, and 100 at the end.")
    return steps


@click.command()
@click.option("--image", help="The new image, best by its digest.")
@options.service
@click.option("--namespace", "-n", help="Its namespace; by default that of kubectl's context.")
@options.option(
    "--steps",
    default="5,25,50,100",
    callback=_steps,
    help="Percentages of the traffic that the new revision gets, one after the other.",
)
@options.option(
    "--pause",
    type=click.FloatRange(0),
    default=120.0,
    help="Seconds for which each step is watched.",
)
@options.option(
    "--wait",
    type=options.SECONDS,
    default=1260.0,
    help="Seconds that the new revision may take until it is ready.",
)
@options.option("--tag", default="next", help="Its tag, for its own address.")
@options.option(
    "--swaps",
    type=click.IntRange(0),
    default=3,
    help="Golden swaps that it has to make at its own address.",
)
@click.option(
    "--max-latency",
    type=options.SECONDS,
    help="The most seconds that each of them may take.",
)
@options.header("Of these swaps.")
@options.combined(options.prometheus, options.selector)
@options.option(
    "--max-errors",
    type=click.FloatRange(0, 1),
    default=MORE_ERRORS,
    help="By how much the part of swaps that fail may be larger than the old revision's.",
)
@options.option(
    "--max-slower",
    type=click.FloatRange(1),
    default=SLOWER,
    help="How many times as long 95 % of its swaps may take.",
)
@click.option(
    "--single-gpu",
    is_flag=True,
    help="Let the old revision go first; requests are held meanwhile. Needs the platform setting"
    " allow-zero-initial-scale.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1),
    help="Replicas that the new revision starts with; by default as many as serve now.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--abort", is_flag=True, help="End a rollout: all traffic back to the old revision.")
@click.option(
    "--unpin",
    is_flag=True,
    help="After a rollout that was undone: let the latest revision have the traffic again, if it is"
    " the one that serves.",
)
@click.pass_context
def rollout(
    context: click.Context,
    *,
    image: str | None,
    service: str,
    namespace: str | None,
    steps: tuple[int, ...],
    pause: float,
    wait: float,
    tag: str,
    swaps: int,
    max_latency: float | None,
    headers: dict[str, str],
    prometheus: Prometheus | None,
    selector: str,
    max_errors: float,
    max_slower: float,
    single_gpu: bool,
    replicas: int | None,
    dry_run: bool,
    abort: bool,
    unpin: bool,
) -> None:
    """Give a new image the traffic, step by step, while it is as good as the old one.

    A new revision is made at 0 %, with as many replicas as serve, waited for until it is proven
    warm, asked for golden swaps at an address of its own, and given the traffic in steps. When
    something is wrong, all traffic goes back to the old one and is pinned there, until a rollout
    ends well or --unpin. Interrupted, it goes on when the same command is run again.

    Exit codes: 0 the new image has all traffic, 69 something cannot be reached, 75 try again, 76 it
    was not good enough, 77 not allowed, 78 something is set wrongly.
    """
    if (bool(image), abort, unpin).count(True) != 1 and not (image and abort and not unpin):
        raise click.UsageError("Give --image, --abort or --unpin.")
    if dry_run and not image:
        raise click.UsageError("Use --dry-run with --image.")
    wanted = RolloutConfig(
        image=image or "",
        service=service,
        tag=tag,
        steps=steps,
        pause_s=pause,
        wait_s=wait,
        swaps=swaps,
        most_s=max_latency,
        headers=headers,
        single_gpu=single_gpu,
        replicas=replicas,
        prometheus=prometheus,
        matchers=selector,
        limits=JudgeLimits(max_errors, max_slower),
    )
    with Cluster.connect(namespace) as cluster:
        rolling = Rollout(cluster, wanted, click.echo)
        if dry_run:
            for line in rolling.plan():
                click.echo(f"would {line}" if not line.startswith("when") else line)
        elif abort:
            rolling.abort()
        elif unpin:
            rolling.unpin()
        else:
            try:
                rolling.run()
            except RevisionRejected as error:
                click.echo(f"Error: {error}", err=True)
                context.exit(Exit.WRONG)
