"""`ember engines`: makes, lists and checks TensorRT plans."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.model_inputs import digest, feeds, photos_below, record, samples
from function.faces import families
from function.process.wiring.service import embedded
from function.runtime import installed
from function.settings import load
from warmup.failures import DamagedError, ManifestError, WarmupError
from warmup.models import manifest
from warmup.models.prefetch import prefetch
from warmup.plans import nvml, plan_key, stored
from warmup.plans.build import BuildError, check_rtx
from warmup.plans.proven_build import BuildRequest, build
from warmup.plans.tensorrt import FULL, RTX, library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.cli.model_inputs import Inputs
    from function.runtime.proof import Proof
    from warmup.models.manifest import Model
    from warmup.plans.build import Tell
    from warmup.plans.plan_key import PlanKey
    from warmup.plans.stored import Plans
    from warmup.plans.tensorrt import Library
    from warmup.settings.settings import WarmupSettings

_FILE = click.argument("file", required=False, type=click.Path(path_type=Path))
_MOST_COMPARED = 8


@click.group()
def engines() -> None:
    """Make, list and check TensorRT plans.

    FILE is a models.toml; without it EMBER_MANIFEST counts, or else the embedded set. What plans
    are like say EMBER_PLAN_PRECISION, EMBER_PLAN_FLAGS, EMBER_PLAN_LEVEL and EMBER_PLAN_WORKSPACE:
    the same settings have to be those of the server.
    """


@engines.command("build")
@_FILE
@click.option("--role", "roles", multiple=True, help="Only this model; may be repeated.")
@click.option(
    "--target",
    metavar="8.9",
    help="With TensorRT-RTX, for all GPUs of this compute capability; needs no GPU.",
)
@click.option(
    "--calibrate",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="For int8: a folder of photos with faces, like those that will come.",
)
@click.option("--time-limit", default=3600.0, show_default=True, help="Seconds for each plan.")
@click.option("--anew", is_flag=True, help="Build also what is there already.")
@click.option("--slower", is_flag=True, help="Keep a plan that is slower than ONNX Runtime.")
def build_them(
    *,
    file: Path | None,
    roles: tuple[str, ...],
    target: str | None,
    calibrate: Path | None,
    time_limit: float,
    anew: bool,
    slower: bool,
) -> None:
    """Build the plans of a manifest for the GPU here, check them, and share them.

    What another machine has shared is fetched instead. A plan that gives something else than its
    model, or is slower than ONNX Runtime on the same GPU, is not kept. Shared they are in
    EMBER_PLANS, if that is set. Exit codes: 65 a plan could not be built or is wrong, 69 there is
    no GPU or nothing that builds, 78 what cannot be done at all.
    """
    from function.runtime.sanity import WrongResultError

    settings = load(os.environ)
    installed.check()
    tool = _builder(target)
    if tool.name == RTX:
        check_rtx(target, stored.recipe(settings.plans))
    facts = None if target else _gpu()
    recipe = stored.recipe(settings.plans)
    plans = stored.open_plans(settings)
    chosen = _chosen(file, settings, roles)
    photos = photos_below(calibrate) if calibrate else samples()
    fed = record(settings, file, photos)
    failed: list[str] = []
    with prefetch(chosen, settings.stores) as ready:
        for model in ready.models:
            key = families.plan_key(model, recipe, tool, facts)
            request = BuildRequest(
                name=model.role,
                graph=model.path,
                key=replace(key, sm=target) if target else key,
                recipe=recipe,
                target=target,
                feeds=partial(feeds, model, fed.get(model.role, ())) if calibrate else None,
                images=digest(calibrate) if calibrate else "",
                limit_s=time_limit,
                slower=slower,
            )
            try:
                with _telling(model.role) as tell:
                    proof = _proof(model, settings, fed)
                    made = build(request, plans, tool, proof, tell=tell, anew=anew)
            except (BuildError, WrongResultError) as error:
                failed.append(model.role)
                click.echo(f"{model.role:12} failed: {error}", err=True)
                continue
            where = plans.publish(made.key) if settings.plans.plans else "in the store"
            click.echo(f"{model.role:12} {_line(made)}  {where}")
    if failed:
        raise DamagedError(f"there is no plan for {', '.join(failed)}")


@engines.command()
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def ls(*, as_json: bool) -> None:
    """List the plans of the store."""
    settings = load(os.environ)
    plans = stored.open_plans(settings)
    for each in plans.entries():
        here = "whole" if _whole(plans, each.key) else "no file"
        if as_json:
            click.echo(json.dumps({**json.loads(each.text()), "state": here}))
        else:
            click.echo(f"{each.key.digest[:12]}  {here:8} {_line(each)}")


@engines.command()
@_FILE
@click.option("--role", "roles", multiple=True, help="Only this model; may be repeated.")
def check(*, file: Path | None, roles: tuple[str, ...]) -> None:
    """See that each model has a plan for the GPU here that is right.

    Exit codes: 65 one is missing or wrong, 69 there is no GPU or nothing that runs plans.
    """
    settings = load(os.environ)
    installed.check()
    from function.service.plans import needed

    plans = stored.open_plans(settings)
    _gpu()
    bad, fed = 0, record(settings, file, samples())
    with prefetch(_chosen(file, settings, roles), settings.stores) as ready:
        of_role = {model.role: model for model in ready.models}
        for role, keys in needed(ready.models, settings.plans, settings.engines.gpus):
            found = next(filter(None, map(plans.find, keys)), None)
            if found is None:
                bad += 1
                click.echo(f"missing  {role}: {keys[0].digest}", err=True)
                continue
            sidecar, held = found
            try:
                assert held.file.path is not None  # noqa: S101 (what is held lies somewhere)
                speedup = _proof(of_role[role], settings, fed).plan(held.file.path, sidecar)
            except WarmupError as error:
                bad += 1
                click.echo(f"bad      {role}: {error}", err=True)
            else:
                click.echo(f"ok       {role}: {_speed(speedup)}")
            finally:
                held.close()
    if bad:
        raise DamagedError(f"{bad} plans cannot be used; `ember engines build` makes them")


def _builder(target: str | None) -> Library:
    """What builds: TensorRT for the GPU here, TensorRT-RTX ahead of time or where that is all."""
    if target:
        return library(RTX)
    try:
        return library(FULL)
    except WarmupError:
        try:
            return library(RTX)
        except WarmupError:
            pass
        raise


def _gpu() -> nvml.Gpu:
    """The GPU here, when its driver works; a library of NVIDIA's would end the process without."""
    from function.runtime.gpu import device

    device.check(0)
    return nvml.first()


def _chosen(file: Path | None, settings: WarmupSettings, roles: tuple[str, ...]) -> Sequence[Model]:
    found = manifest.read(file or settings.models.manifest or embedded())
    known = [model.role for model in found if not families.on_cpu(model)]
    if unknown := [role for role in roles if role not in known]:
        raise ManifestError(f"there is no model for {', '.join(unknown)}; there are: {known}")
    wanted = [model for model in found if model.role in (roles or known)]
    return [replace(model, variants=()) for model in wanted]


def _proof(
    model: Model,
    settings: WarmupSettings,
    fed: Inputs,
) -> Proof:
    from function.runtime.proof import Proof

    return Proof(
        name=model.role,
        path=model.path,
        shapes=families.shapes(model),
        items=fed.get(model.role, [])[:_MOST_COMPARED],
        precision=settings.plans.plan_precision,
        ports=families.ports(model),
        golden=model.golden,
    )


def _whole(plans: Plans, key: PlanKey) -> bool:
    found = plans.find(key)
    if found:
        found[1].close()
    return found is not None


def _line(sidecar: plan_key.Sidecar) -> str:
    key = sidecar.key
    where = key.gpu if key.gpu != plan_key.ANY else f"compute capability {key.sm}"
    return (
        f"{key.precision}  {where}  {sidecar.size / 1e6:,.1f} MB  {sidecar.seconds:.0f} s"
        f"  {_speed(sidecar.speedup)}"
    )


def _speed(speedup: float | None) -> str:
    return "not measured" if speedup is None else f"{speedup:.2f} × ONNX Runtime"


@contextmanager
def _telling(name: str) -> Iterator[Tell]:
    """A bar on a terminal, else a line of JSON for each phase."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<44}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as bars:
            task = bars.add_task(name, total=1.0)
            yield lambda phase, part: bars.update(
                task, description=f"{name}: {phase}", completed=part
            )
        return
    lock, seen = threading.Lock(), set()

    def tell(phase: str, _: float) -> None:
        with lock:
            if phase not in seen:
                seen.add(phase)
                click.echo(json.dumps({"name": name, "phase": phase}), err=True)

    with nullcontext():
        yield tell
