"""Whether a plan, or a graph in another precision, does what its model does, and how fast."""

from __future__ import annotations

import itertools
import logging
import statistics
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing import get_context
from typing import TYPE_CHECKING

import numpy as np

from function.runtime import sanity
from function.runtime.backends.cuda import Cuda
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.tensorrt import open_plan
from function.runtime.engine import NotOnDeviceError, Ports
from function.runtime.gpu import device
from function.runtime.gpu.device_health import loss
from function.runtime.sanity import WrongResultError
from warmup.plans.nvml import visible
from warmup.plans.plan_key import ANY
from warmup.plans.tensorrt import runner_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from function.runtime.engine import Engine
    from warmup.models.manifest import GoldenEntry
    from warmup.plans.plan_key import Sidecar

log = logging.getLogger("ember.proof")

LEAST = {"fp32": 0.9999, "fp16": 0.999, "int8": 0.98}
"""How alike (cosine) each output has to be to the model's on the CPU, by precision."""

_ROUNDS = 10


@dataclass
class Proof:
    """Compares with the model itself, on the CPU.

    Attributes:
        name: of the model, for messages.
        path: its ONNX file.
        shapes: for each batch size the shape of each input.
        items: real inputs, one item each; noise where there are none.
        precision: what is allowed to differ depends on it.
        ports: how arrays become inputs.
        golden: a known input and output, if the manifest has them.
        number: of the GPU.
    """

    name: str
    path: Path
    shapes: Sequence[Sequence[tuple[int, ...]]]
    precision: str
    items: Sequence[tuple[NDArray[np.float32], ...]] = ()
    ports: Ports = field(default_factory=Ports)
    golden: GoldenEntry | None = None
    number: int = 0

    def graph(self, path: Path) -> None:
        """See that a graph in another precision is right; on the CPU.

        Raises:
            WrongResultError: it is not.
        """
        self._compare(OnnxEngine(path, ports=self.ports), self.shapes[:1])

    def plan(self, path: Path, sidecar: Sidecar) -> float | None:
        """See that a plan is right for every batch size, in a process of its own.

        The library that runs plans is often not the one that builds them, and one process must not
        have both. A plan for other GPUs than the one here cannot be run, so nothing is seen of it.

        Returns:
            How many times as fast as ONNX Runtime on the same GPU it is, with the largest batch;
            None where it was not run, or ONNX Runtime cannot use the GPU.

        Raises:
            WrongResultError: it is not right, or it ended the process that tried it.
        """
        try:
            device.check(self.number)
        except NotOnDeviceError:
            return None
        here = visible()[self.number]
        if sidecar.key.sm not in {here.sm, ANY} and not sidecar.key.sm.endswith("+"):
            facts = {"model": self.name, "plan_for": sidecar.key.sm, "here": here.sm}
            log.warning(
                "the plan is for another GPU than the one here; it was not run", extra=facts
            )
            return None
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                return pool.submit(replace(self).run_plan, path, sidecar).result()
            except BrokenProcessPool as error:
                raise WrongResultError(
                    f"{self.name} in {self.precision}: the process that ran the plan has ended"
                ) from error

    def run_plan(self, path: Path, sidecar: Sidecar) -> float | None:
        """`plan`, in the process that loads the library; with the same results."""
        library = runner_of(sidecar.key)
        engine = open_plan(path, sidecar, library, number=self.number, ports=self.ports)
        try:
            self._compare(engine, self.shapes)
            inputs = self._inputs(self.shapes[-1])
            beside = self._beside(inputs)
            return beside and beside / seconds(engine, inputs)
        finally:
            engine.close()

    def _beside(self, inputs: Sequence[NDArray[np.float32]]) -> float | None:
        """How long ONNX Runtime takes on the same GPU; None where it cannot use that."""
        try:
            engine = OnnxEngine(self.path, cuda=Cuda(device=self.number), ports=self.ports)
            return seconds(engine, inputs)
        except Exception as error:  # some of its libraries are missed by the first run only
            if lost := loss(error):
                raise lost from error
            reason = {"model": self.name, "reason": str(error)}
            log.info("ONNX Runtime does not run it on this GPU: not measured", extra=reason)
            return None

    @cached_property
    def _model(self) -> OnnxEngine:
        return OnnxEngine(self.path, ports=self.ports)

    def _inputs(self, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        """A batch of real items, over and over; of noise, where there are none."""
        if not self.items:
            rng = np.random.default_rng(0)
            return [rng.random(shape, np.float32) for shape in shapes]
        fitting = alike(self.items)
        rows = list(itertools.islice(itertools.cycle(fitting), shapes[0][0]))
        return [np.concatenate(column) for column in zip(*rows, strict=True)]

    def _compare(self, engine: Engine, shapes: Sequence[Sequence[tuple[int, ...]]]) -> None:
        if self.golden:
            sanity.known(self.name, engine, self.golden)
        for each in shapes:
            inputs = self._inputs(each)
            found, right = engine.run(*inputs), self._model.run(*inputs)
            sanity.finite(f"{self.name} in {self.precision}", found)
            least = min(sanity.cosine(a, b) for a, b in zip(found, right, strict=True))
            if not least >= LEAST[self.precision]:
                raise WrongResultError(
                    f"{self.name} in {self.precision}: for a batch of {each[0][0]} it is like the"
                    f" model to {least:.5f} (cosine), at least {LEAST[self.precision]:g} is right"
                )


def alike(
    items: Sequence[tuple[NDArray[np.float32], ...]],
) -> list[tuple[NDArray[np.float32], ...]]:
    """Those items that have the shapes that most of them have."""
    shapes = [tuple(each.shape for each in item) for item in items]
    usual = Counter(shapes).most_common(1)[0][0] if shapes else ()
    return [item for item, shape in zip(items, shapes, strict=True) if shape == usual]


def seconds(engine: Engine, inputs: Sequence[NDArray[np.float32]]) -> float:
    """How long a run takes: the median of a few, when the first ones are over."""
    took = []
    for number in range(_ROUNDS + 3):
        began = time.perf_counter()
        engine.run(*inputs)
        if number >= 3:
            took.append(time.perf_counter() - began)
    return statistics.median(took)
