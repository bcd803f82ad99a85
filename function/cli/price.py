"""`ember price`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from function.cli.files import PHOTO, read
from function.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from function.admission.policy import PricedJob, Prices
    from function.faces.select import Selection


@click.command()
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=PHOTO)
@click.option("--sources", type=click.IntRange(1, 8), default=1, help="How many source photos.")
@click.option("--faces", default="all", show_default=True, help="As for `ember swap`.")
@click.option("--json", "as_json", is_flag=True, help="Write one line of JSON.")
def price(images: tuple[Path, ...], sources: int, faces: str, *, as_json: bool) -> None:
    """Say how many tokens a swap with IMAGE as its target costs.

    Several are priced as one batch, and each by itself as well. The sources, and the photo for
    `--faces like`, count as photos of usual size. EMBER_POLICY names the price list.
    """
    from function.faces.select import Selection
    from function.process.wiring.admission import policy

    prices = policy(load(os.environ).access).prices
    chosen = Selection.parse(faces)
    jobs = {path: _job(path, sources, chosen) for path in images}
    alone = {path: prices.of(job) for path, job in jobs.items()}
    batch = {path: prices.of(job, len(jobs)) for path, job in jobs.items()}
    if as_json:
        each = [
            {"image": str(path), "pixels": job.pixels, "tokens": alone[path], "batch": batch[path]}
            for path, job in jobs.items()
        ]
        click.echo(json.dumps({"images": each, "batch": sum(batch.values())}))
        return
    for path, job in jobs.items():
        click.echo(f"{alone[path]:>5}  {path}  ({_class(job, prices)})")
    if len(jobs) > 1:
        click.echo(f"{sum(batch.values()):>5}  as one batch")


def _job(path: Path, sources: int, chosen: Selection) -> PricedJob:
    from function.admission.policy import PricedJob
    from function.images import kinds
    from function.problems import Problem
    from function.video import measure

    data = read(path)
    if (pixels := measure.worth(data, kinds.clip(data))) is None:
        raise Problem("bad_image", f"{path} is no photo whose size can be read.")
    likes = len(chosen.likes)
    return PricedJob(pixels, sources, chosen.named, like=likes, size=len(data))


def _class(job: PricedJob, prices: Prices) -> str:
    fitting = [size.name for size in prices.sizes if job.pixels <= size.pixels]
    size = fitting[0] if fitting else f"above {prices.sizes[-1].name}"
    return f"{job.pixels / 1e6:.2f} megapixels: {size}"
