"""Compiling one ONNX graph into a plan, with TensorRT or TensorRT-RTX.

Networks are strongly typed, as TensorRT 11 and TensorRT-RTX know no others: the graph itself has
the precision that is wanted (`warmup.plans.precision`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warmup.failures import ManifestError, UnavailableError, WarmupError
from warmup.models.store import replace_file
from warmup.plans.tensorrt import RTX, listening, logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warmup.plans.plan_key import Extent, Profile, Recipe
    from warmup.plans.tensorrt import Library

    Tell = Callable[[str, float], None]
    """Called with the phase, and which part of it is done, from 0 to 1."""

RTX_TARGETS = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")
"""The compute capabilities that TensorRT-RTX compiles for."""


class BuildError(WarmupError):
    """A plan could not be built, or is of no use."""


@dataclass(frozen=True, slots=True)
class BuildJob:
    """What is to be compiled.

    Attributes:
        graph: the ONNX file, already in the precision that is wanted.
        profiles: the shapes; an input that is called "" is the only one.
        recipe: how.
        target: for TensorRT-RTX, the compute capability; None for that of the GPU here.
        timings: the file in which TensorRT keeps how fast each way to compute was; None for none.
        limit_s: how long it may take.
    """

    graph: Path
    profiles: tuple[Profile, ...]
    recipe: Recipe
    target: str | None = None
    timings: Path | None = None
    limit_s: float = 3600.0


def check_rtx(target: str | None, recipe: Recipe) -> None:
    """See that TensorRT-RTX can do it.

    Raises:
        ManifestError: it cannot.
    """
    if target is not None and target not in RTX_TARGETS:
        raise ManifestError(
            f"TensorRT-RTX compiles for {', '.join(RTX_TARGETS)}, not for {target}: it is made"
            " for RTX cards. Data-centre GPUs of compute capability 9.0 and 10.0 need TensorRT."
        )
    if target == "7.5" and recipe.precision != "fp16":
        raise ManifestError("TensorRT-RTX runs on 7.5 in fp16 only: EMBER_PLAN_PRECISION=fp16")
    if compatible := [each for each in recipe.flags if each.endswith("-compatible")]:
        raise ManifestError(
            f"TensorRT-RTX has no {', '.join(compatible)} plans: unset EMBER_PLAN_FLAGS, and name"
            " each compute capability with --target"
        )


def compile_plan(
    job: BuildJob,
    library: Library,
    *,
    tell: Tell = lambda *_: None,
    clock: Callable[[], float] = time.monotonic,
) -> bytes:
    """Compile.

    Without a GPU only TensorRT-RTX can; whoever uses TensorRT has looked for a driver before.

    Args:
        job: what.
        library: with what.
        tell: called with how far it is, in this thread or others.
        clock: seconds, never going back.

    Raises:
        BuildError: the graph cannot be compiled, or it takes too long.
        UnavailableError: the library only runs plans.
    """
    trt = library.module
    if not hasattr(trt, "Builder"):
        raise UnavailableError(
            f"{library.name} only runs plans; building needs tensorrt (from NVIDIA's package index)"
            " or, for RTX cards, tensorrt-rtx"
        )
    if library.name == RTX:
        check_rtx(job.target, job.recipe)
    with listening(trt) as said:
        builder = trt.Builder(logger(trt))
        network = builder.create_network(_strongly_typed(trt))
        parser = trt.OnnxParser(network, logger(trt))
        if not parser.parse_from_file(str(job.graph)):
            why = _said(parser) or said.text
            raise BuildError(f"{job.graph.name} cannot be compiled: {why}")
        config = builder.create_builder_config()
        _configure(trt, config, job)
        _add_profiles(builder, network, config, job)
        cache = None if library.name == RTX else _timings(config, job)  # RTX times nothing
        monitor = _monitor(trt, tell, clock, clock() + job.limit_s)
        config.progress_monitor = monitor
        plan = builder.build_serialized_network(network, config)
    if plan is None:
        over = f"it took longer than {job.limit_s:g} s (--time-limit)"
        why = over if monitor.over else said.text
        raise BuildError(f"{job.graph.name} cannot be compiled: {why}")
    if cache is not None and job.timings is not None:
        with suppress(OSError):
            job.timings.parent.mkdir(parents=True, exist_ok=True)
            replace_file(job.timings, bytes(cache.serialize()))
    return bytes(plan)


def _strongly_typed(trt: Any) -> int:
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _configure(trt: Any, config: Any, job: BuildJob) -> None:
    flags = {
        "version-compatible": ("VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME"),
        "tf32": ("TF32",),
    }
    config.clear_flag(trt.BuilderFlag.TF32)  # it is on by default
    for word in job.recipe.flags:
        for name in flags.get(word, ()):
            config.set_flag(getattr(trt.BuilderFlag, name))
    if "hardware-compatible" in job.recipe.flags:
        config.hardware_compatibility_level = trt.HardwareCompatibilityLevel.AMPERE_PLUS
    config.builder_optimization_level = job.recipe.level
    if job.recipe.workspace is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, job.recipe.workspace)
    if job.target is not None:
        capability = getattr(trt.ComputeCapability, f"SM{job.target.replace('.', '')}")
        config.num_compute_capabilities = 1
        config.set_compute_capability(capability, 0)


def _add_profiles(builder: Any, network: Any, config: Any, job: BuildJob) -> None:
    """A profile for each batch size, unless the graph itself has only one."""
    inputs = {
        (tensor := network.get_input(index)).name: tuple(tensor.shape)
        for index in range(network.num_inputs)
    }
    free = {name for name, shape in inputs.items() if -1 in shape}
    for profile in job.profiles if free else ():
        made = builder.create_optimization_profile()
        for extent in profile:
            name = extent.name or next(iter(inputs))
            if name not in inputs:
                raise BuildError(f"{job.graph.name} has the inputs {list(inputs)}, not {name}")
            if name in free:
                made.set_shape(name, *_within(inputs[name], extent, job.graph.name))
        if config.add_optimization_profile(made) < 0:
            raise BuildError(f"{job.graph.name} does not take the shapes {profile}")


def _within(own: tuple[int, ...], extent: Extent, graph: str) -> list[tuple[int, ...]]:
    """The shapes of an extent, with the graph's own number where that leaves no choice."""
    least, _, most = extent.shapes
    if len(own) != len(least) or any(
        axis != -1 and not low <= axis <= high
        for axis, low, high in zip(own, least, most, strict=True)
    ):
        raise BuildError(f"{graph} takes {extent.name or 'inputs'} of {own}, not of {most}")
    return [
        tuple(wanted if axis == -1 else axis for axis, wanted in zip(own, shape, strict=True))
        for shape in extent.shapes
    ]


def _timings(config: Any, job: BuildJob) -> Any:
    """The timing cache, with what earlier builds on this machine have found."""
    if job.timings is None:
        return None
    known = b""
    with suppress(OSError):
        known = job.timings.read_bytes()
    cache = config.create_timing_cache(known)
    return cache if config.set_timing_cache(cache, ignore_mismatch=False) else None


def _said(parser: Any) -> str:
    return "; ".join(parser.get_error(index).desc() for index in range(parser.num_errors))


def _monitor(trt: Any, tell: Tell, clock: Callable[[], float], end: float) -> Any:
    """Tells how far building is, and ends it when the time is up."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        over = False

        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self.steps: dict[str, int] = {}

        def phase_start(self, name: str, parent: str | None, steps: int) -> None:  # noqa: ARG002
            self.steps[name] = max(1, steps)
            tell(name, 0.0)

        def step_complete(self, name: str, step: int) -> bool:
            tell(name, min(1.0, (step + 1) / self.steps.get(name, 1)))
            self.over = self.over or clock() > end
            return not self.over

        def phase_finish(self, name: str) -> None:
            tell(name, 1.0)

    return Monitor()
