"""A graph in another precision: half floats, or whole numbers of 8 bits with scales (QDQ).

Inputs and outputs stay float32. The scales are those of an entropy calibration: for each tensor the
range that loses the least of what it was seen to hold while real inputs ran. That is done with ONNX
Runtime on the CPU, so it needs no GPU, and its result is a file that is read again next time.
"""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from warmup.extras import bring
from warmup.failures import UnavailableError
from warmup.models.store import replace_file
from warmup.plans.build import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Feed = Mapping[str, NDArray[np.generic]]
    """The inputs of one run by name; the first axis of each is 1."""

EXACT = "exact/"
"""How the names of operators begin that stay in float32: those that compute places in a picture."""

_QUANTISED = ["Conv", "ConvTranspose", "Gemm", "MatMul"]
_OPSET = 13  # the first whose scales can differ by channel
_FORMAT = 1


def half(source: Path, target: Path) -> Path:
    """Write a graph whose weights and operations are float16.

    Raises:
        BuildError: it cannot be converted.
        UnavailableError: the package onnx is not installed.
    """
    onnx = _onnx()
    from onnxruntime.transformers.float16 import convert_float_to_float16

    try:
        model = onnx.load(source)
        model = convert_float_to_float16(model, keep_io_types=True, node_block_list=exact(model))
    except Exception as error:
        raise BuildError(f"{source.name} cannot be converted to fp16: {error}") from error
    onnx.save(model, target, save_as_external_data=True, location=f"{target.name}.data")
    return target


def exact(model: Any) -> list[str]:
    """The names of a graph's operators that stay in float32."""
    return [node.name for node in model.graph.node if node.name.startswith(EXACT)]


def eighth(source: Path, target: Path, ranges: Mapping[str, tuple[float, float]]) -> Path:
    """Write a graph whose convolutions and products are of 8-bit numbers.

    Args:
        source: the graph.
        target: where to.
        ranges: of each tensor, from `calibrate`.

    Raises:
        BuildError: it cannot be converted.
        UnavailableError: the package onnx is not installed.
    """
    onnx = _onnx()
    import numpy as np
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorData, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    data = {
        name: TensorData(lowest=np.float32(low), highest=np.float32(high))
        for name, (low, high) in ranges.items()
    }
    try:
        quantiser = QDQQuantizer(
            _at_opset(onnx.load(source)),
            per_channel=True,
            reduce_range=False,
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QInt8,
            tensors_range=TensorsData(CalibrationMethod.MinMax, data),
            nodes_to_quantize=[],
            nodes_to_exclude=[],
            op_types_to_quantize=_QUANTISED,
            # What TensorRT takes: scales without offsets, and biases left alone.
            extra_options={
                "ActivationSymmetric": True,
                "WeightSymmetric": True,
                "QuantizeBias": False,
            },
        )
        quantiser.quantize_model()
    except Exception as error:
        raise BuildError(f"{source.name} cannot be converted to int8: {error}") from error
    model = quantiser.model.model
    onnx.save(model, target, save_as_external_data=True, location=f"{target.name}.data")
    return target


def calibrate(
    source: Path, feeds: Iterable[Feed], cache: Path, scratch: Path
) -> dict[str, tuple[float, float]]:
    """The range of each tensor over some inputs, by entropy; from the cache where it has them.

    Args:
        source: the graph.
        feeds: real inputs; a few hundred are many. Not asked for where the cache has the ranges.
        cache: the file that keeps the ranges, of this graph and these inputs.
        scratch: a folder for a graph that is forgotten afterwards.

    Raises:
        BuildError: there is no input, or the graph cannot be run.
    """
    if found := _cached(cache):
        return found
    onnx = _onnx()
    import onnxruntime
    from onnxruntime.quantization.calibrate import CalibrationMethod, create_calibrator

    onnxruntime.set_default_logger_severity(3)  # it warns of each weight that nothing uses
    model = scratch / "calibrated.onnx"
    onnx.save(_at_opset(onnx.load(source)), model)
    calibrator = create_calibrator(
        model,
        _QUANTISED,
        str(scratch / "augmented.onnx"),
        CalibrationMethod.Entropy,
        extra_options={"symmetric": True},
    )
    reader = _FeedReader(feeds)
    try:
        with redirect_stdout(StringIO()):  # it talks
            calibrator.collect_data(reader)
            data = calibrator.compute_data()
    except Exception as error:
        if not reader.count:
            raise BuildError(
                f"{source.name} has not been run once: are there faces in the images?"
            ) from error
        raise BuildError(f"{source.name} cannot be calibrated: {error}") from error
    ranges = {
        name: (float(each.range_value[0]), float(each.range_value[1]))
        for name, each in data.items()
    }
    cache.parent.mkdir(parents=True, exist_ok=True)
    replace_file(cache, json.dumps({"format": _FORMAT, "ranges": ranges}))
    return ranges


class _FeedReader:
    """Hands inputs to the calibrator, one after the other."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds, self.count = iter(feeds), 0

    def get_next(self) -> dict[str, Any] | None:
        feed = next(self._feeds, None)
        self.count += feed is not None
        return None if feed is None else dict(feed)


def _cached(path: Path) -> dict[str, tuple[float, float]] | None:
    try:
        facts = json.loads(path.read_bytes())
        if facts["format"] != _FORMAT:
            return None
        return {name: (float(low), float(high)) for name, (low, high) in facts["ranges"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _at_opset(model: Any) -> Any:
    """The model in a version of the operators that knows what we need."""
    from onnx import version_converter

    have = next((each.version for each in model.opset_import if each.domain in {"", "ai.onnx"}), 0)
    return model if have >= _OPSET else version_converter.convert_version(model, _OPSET)


def _onnx() -> Any:
    try:
        import onnx
    except ModuleNotFoundError:
        raise UnavailableError(f"converting a graph needs onnx: {bring('engines')}") from None
    return onnx
