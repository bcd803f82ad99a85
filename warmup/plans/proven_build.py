"""Building plans: once for each key, checked before anybody sees them."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from warmup.models import lock
from warmup.plans import precision
from warmup.plans.build import BuildError, BuildJob, compile_plan
from warmup.plans.plan_key import is_newer
from warmup.plans.stored import described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from warmup.plans.build import Tell
    from warmup.plans.plan_key import PlanKey, Recipe, Sidecar
    from warmup.plans.precision import Feed
    from warmup.plans.stored import Plans
    from warmup.plans.tensorrt import Library

log = logging.getLogger("ember.engines")


class Prove(Protocol):
    """Runs what was made; raises when it is wrong."""

    def graph(self, path: Path) -> None:
        """Check a graph in another precision."""
        ...

    def plan(self, path: Path, sidecar: Sidecar) -> float | None:
        """Check a plan.

        Returns:
            How many times as fast as ONNX Runtime it is; None when nobody can know here.
        """
        ...


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A plan that is wanted.

    Attributes:
        name: of the model, for people.
        graph: its ONNX file, which was verified.
        key: the plan's.
        recipe: how it is made.
        target: for TensorRT-RTX, the compute capability; None for that of the GPU here.
        feeds: gives real inputs, for int8; None without any.
        images: what the inputs were made from, as a digest.
        limit_s: how long compiling may take.
        slower: whether it is also kept when it is slower than ONNX Runtime.
    """

    name: str
    graph: Path
    key: PlanKey
    recipe: Recipe
    target: str | None = None
    feeds: Callable[[], Iterable[Feed]] | None = None
    images: str = ""
    limit_s: float = 3600.0
    slower: bool = False


def build(
    request: BuildRequest,
    plans: Plans,
    library: Library,
    prove: Prove,
    *,
    tell: Tell = lambda *_: None,
    anew: bool = False,
) -> Sidecar:
    """The plan that is wanted, from the store, from where nodes share plans, or built.

    Of several processes that want the same one, one builds and the others wait for it. One that a
    newer library has built, which those here cannot run, is built again. One that is wrong, or
    slower than what it replaces, is not kept.

    Args:
        request: what is wanted.
        plans: where it goes.
        library: compiles it.
        prove: checks it.
        tell: called with how far it is.
        anew: whether it is built even where there is one.

    Raises:
        BuildError: it cannot be built, or is slower.
        WarmupError: what fetching or checking raised.
    """
    plans.store.create()
    with lock.exclusive(plans.store.lock(f"plan-{request.key.digest}")):
        if not anew and plans.fetch(request.key):
            found = plans.find(request.key)
            if found:
                found[1].close()
                if not is_newer(found[0].built_by, library.version):
                    return found[0]
                older = {"plan": request.key.digest, "built_by": found[0].built_by}
                log.info("a plan of a newer library is of no use here", extra=older)
        with _scratch(plans) as scratch:
            began = time.monotonic()
            graph = _in_precision(request, plans.store.root, scratch, tell)
            if graph != request.graph:
                prove.graph(graph)
            folder = plans.store.root / "plans"
            timings = folder / f"timings-{library.name}-{library.version}-{request.key.sm}"
            job = BuildJob(
                graph,
                request.key.profiles,
                request.recipe,
                request.target,
                timings,
                request.limit_s,
            )
            content = compile_plan(job, library, tell=tell)
            seconds = time.monotonic() - began
            sidecar = described(request.key, content, built_by=library.version, seconds=seconds)
            draft = scratch / "plan"
            draft.write_bytes(content)
            tell("check", 0.0)
            sidecar = replace(sidecar, speedup=prove.plan(draft, sidecar))
            tell("check", 1.0)
            if sidecar.speedup is not None and sidecar.speedup < 1 and not request.slower:
                raise BuildError(
                    f"the plan for {request.name} is right, but only {sidecar.speedup:.2f} times as"
                    " fast as ONNX Runtime here; it is not kept (--slower keeps it)"
                )
            plans.keep(sidecar, content)
    facts = {"model": request.name, "plan": request.key.digest, "seconds": sidecar.seconds}
    log.info("built a plan", extra=facts)
    return sidecar


def _in_precision(request: BuildRequest, store: Path, scratch: Path, tell: Tell) -> Path:
    """The graph in the precision of the request."""
    wanted = request.recipe.precision
    if wanted == "fp32":
        return request.graph
    tell(f"convert to {wanted}", 0.0)
    target = scratch / f"{wanted}.onnx"
    if wanted == "fp16":
        return precision.half(request.graph, target)
    if request.feeds is None:
        raise BuildError(f"{request.name}: int8 needs images with faces: --calibrate FOLDER")
    cache = store / "plans" / f"calibration-{request.key.model[:16]}-{request.images[:16]}.ranges"
    ranges = precision.calibrate(request.graph, request.feeds(), cache, scratch)
    return precision.eighth(request.graph, target, ranges)


@contextmanager
def _scratch(plans: Plans) -> Iterator[Path]:
    """A folder on the disk of the store that goes away again."""
    with plans.store.writing("building a plan"):
        folder = TemporaryDirectory(prefix=".build-", dir=plans.store.root / "plans")
    with folder as name:
        yield Path(name)
