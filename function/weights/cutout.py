"""A graph that cuts faces out of the picture and puts them back, around a network of faces.

What goes in and comes out is described in `function.faces.swappers.cutouts`; what is computed is
what `geometry.crop`, `generator.split`, `generator.join` and `paste` compute on the CPU. The same
network gives the same graph, to the byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import cv2
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from function.faces import families
from function.faces.enhance import SPECS as ENHANCERS
from function.faces.families import CUTOUT, FAMILIES
from function.faces.swappers.crop_masks import STEPS
from function.faces.swappers.generator import SPECS as SWAPPERS
from function.faces.swappers.generator import SwapperFamily
from function.runtime import onnxfile
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.cpus import usable_cpus
from function.weights import proof
from function.weights.change import changed, loaded
from warmup.models.file import File
from warmup.models.manifest import Model
from warmup.plans.precision import EXACT

if TYPE_CHECKING:
    from pathlib import Path

    from function.faces.families import Family
    from function.faces.swappers.generator import Generator

_CHANGED = "cutout.changed"
_OPSET = 16  # the first with GridSample
_SIDE = 1.5  # of cutouts, in sides of what is made from one
_WITHIN = 1  # level, by which rounding may differ


def make(source: Path, out: Path, role: str, family: str, side: int | None = None) -> int:
    """Write the graph, if what it makes is what the network makes.

    Args:
        source: the network, one of "swap" or "enhance".
        out: the file to write.
        role: of the network.
        family: of the network.
        side: of the cutouts; None for half as much again as is made from one.

    Returns:
        The side of the cutouts.

    Raises:
        DamagedError: the source is no ONNX model.
        UnprovenError: it takes other things than the family, or makes something else.
        StoreError: the file cannot be written.
    """
    if role not in {"swap", "enhance"}:
        raise proof.UnprovenError(f"{source}: only networks for swap and enhance put faces back")
    graph = onnxfile.read(source)
    found = FAMILIES[role, family]
    size = found.items[0][1]
    made, most = (int(each) for each in found.options["cutout"])
    side = round(_SIDE * made / 2) * 2 if side is None else side
    if not made <= side <= most:
        raise proof.UnprovenError(f"{source}: cutouts of {family} have {made} to {most} pixels")
    if graph.items is not None and made > size:
        raise proof.UnprovenError(
            f"{source}: a face takes {(made // size) ** 2} items, and it was made for"
            f" {graph.items}: `ember models batch` makes it take any number"
        )
    first = found.inputs[:1] or [each.name for each in graph.inputs if len(each.dims) == 4]
    picture = next(
        (each for each in graph.inputs if each.name in first and each.item == (3, size, size)), None
    )
    result = next((each for each in graph.outputs if each.item == (3, size, size)), None)
    if picture is None or result is None:
        raise proof.UnprovenError(f"{source}: it is no network of the family {family}")
    model = _at_opset(loaded(graph))
    spec = _spec(role, family)
    ends = _Ends(model, spec, made, side)
    ends.put(picture.name, result.name, found)
    with changed(model, graph, out, f"it takes cutouts of {side} pixels") as draft:
        try:
            _prove(source, draft, role, family, side)
        except proof.UnprovenError as error:
            raise proof.UnprovenError(f"{source}: {error}") from None
    return side


def _spec(role: str, family: str) -> SwapperFamily:
    """What a network takes and gives, also one that enhances."""
    if role == "swap":
        return SWAPPERS[family]
    half, found = (0.5, 0.5, 0.5), ENHANCERS[family]
    return SwapperFamily(found.size, found.template, half, half, signed=True)


class _Ends:
    """What is put before and behind a network.

    Args:
        model: the network; it is changed.
        spec: what it takes and gives.
        made: side of the crops.
        side: of the cutouts.
    """

    def __init__(self, model: onnx.ModelProto, spec: SwapperFamily, made: int, side: int) -> None:
        self._graph, self._spec, self._made, self._side = model.graph, spec, made, side
        self._opset = _opset(model)
        self._nodes: list[onnx.NodeProto] = []
        self._factor = made // spec.size
        self._names = 0

    def put(self, picture: str, result: str, family: Family) -> None:
        """Put them there.

        Args:
            picture: the name of the input that is the crop.
            result: that of the output that is the face.
            family: names the other inputs.
        """
        graph, before = self._graph, list(self._graph.node)
        inputs = {each.name: each for each in graph.input}
        kind = inputs[picture].type.tensor_type
        items = kind.shape.dim[0].dim_param or kind.shape.dim[0].dim_value
        whole = self._op("Transpose", self._float(CUTOUT[0]), perm=[0, 3, 1, 2])
        self._crop(whole, picture, kind.elem_type)
        if self._factor > 1:
            for name in family.inputs[1:]:
                self._repeat(name, inputs[name], before)
        front, self._nodes = self._nodes, []
        self._paste(whole, self._levels(result))
        del graph.node[:], graph.value_info[:], graph.output[:]
        graph.node.extend([*front, *before, *self._nodes])
        outside = [each for each in graph.input if each.name != picture]
        del graph.input[:]
        side, made, byte = self._side, self._made, TensorProto.UINT8
        shapes = (side, side, 3), (2, 3), (2, 3), (made, made)
        kinds = byte, TensorProto.FLOAT, TensorProto.FLOAT, byte
        for name, shape, own in zip(CUTOUT, shapes, kinds, strict=True):
            graph.input.append(helper.make_tensor_value_info(name, own, [items, *shape]))
        graph.input.extend(outside)
        changed = helper.make_tensor_value_info(_CHANGED, byte, [items, side, side, 3])
        graph.output.append(changed)

    def _crop(self, whole: str, picture: str, kind: int) -> None:
        """Cut faces out as the network takes them; see `geometry.crop` and `Generator.make`."""
        spec, size, k = self._spec, self._spec.size, self._factor
        value = self._sample(whole, CUTOUT[1], self._made, "border")
        value = self._op("Floor", self._op("Add", value, self._number(0.5)))
        if k > 1:
            value = self._reshape(value, -1, 3, size, k, size, k)
            value = self._op("Transpose", value, perm=[0, 3, 5, 1, 2, 4])
            value = self._reshape(value, -1, 3, size, size)
        deviation, mean = (np.array(each, np.float32) for each in (spec.deviation, spec.mean))
        value = self._op("Mul", value, self._channels(1 / (255 * deviation)))
        value = self._op("Sub", value, self._channels(mean / deviation))
        self._named(picture, "Cast", value, to=kind)

    def _repeat(self, name: str, value: onnx.ValueInfoProto, network: list[onnx.NodeProto]) -> None:
        """Give what a face gets to each of its small images."""
        item = [each.dim_value for each in value.type.tensor_type.shape.dim][1:]
        count = self._factor**2
        ones = [1] * len(item)
        many = self._op("Tile", self._reshape(name, -1, 1, *item), self._shape(1, count, *ones))
        many = self._reshape(many, -1, *item)
        for node in network:
            node.input[:] = [many if each == name else each for each in node.input]

    def _levels(self, result: str) -> str:
        """The faces in levels, float32 [N, 3, made, made]; see `generator.join`."""
        size, k = self._spec.size, self._factor
        scale, shift = (127.5, 127.5) if self._spec.signed else (255.0, 0.0)
        value = self._op("Mul", self._float(result), self._number(scale))
        value = self._op("Add", value, self._number(shift + 0.5))
        value = self._op("Clip", value, self._number(0), self._number(255))
        value = self._op("Floor", value)
        if k > 1:
            value = self._reshape(value, -1, k, k, 3, size, size)
            value = self._op("Transpose", value, perm=[0, 3, 4, 1, 5, 2])
            value = self._reshape(value, -1, 3, self._made, self._made)
        return value

    def _paste(self, whole: str, made: str) -> None:
        """Blend what was made into the cutouts; see `paste`. The epsilon is cv2.blendLinear's."""
        mask = self._reshape(self._float(CUTOUT[3]), -1, 1, self._made, self._made)
        both = self._op("Concat", made, mask, axis=1)
        both = self._sample(both, CUTOUT[2], self._side, "zeros")
        drawn = self._op("Add", self._slice(both, 0, 3), self._number(0.5))
        change = self._op("Sub", self._op("Floor", drawn), whole)
        share = self._op("Mul", self._slice(both, 3, 4), self._number(1 / STEPS))
        value = self._op("Add", whole, self._op("Mul", share, change))
        value = self._op("Mul", value, self._number(1 / (1 + 1e-5)))
        value = self._op("Floor", self._op("Add", value, self._number(0.5)))
        value = self._op("Transpose", value, perm=[0, 2, 3, 1])
        self._named(_CHANGED, "Cast", value, to=TensorProto.UINT8)

    def _sample(self, image: str, map_: str, side: int, padding: str) -> str:
        """A square image out of others, where a map [N, 2, 3] says.

        By sums and products of single numbers: GPUs shorten those of matrices to 10 bits.
        """
        steps = np.arange(side, dtype=np.float32)
        a, b, c = (
            self._reshape(self._op("Gather", map_, self._shape(n), axis=2), -1, 2, 1, 1)
            for n in range(3)
        )
        across = self._op("Mul", a, self._constant(steps.reshape(1, 1, 1, side)))
        down = self._op("Mul", b, self._constant(steps.reshape(1, 1, side, 1)))
        at = self._op("Add", self._op("Add", across, down), c)
        at = self._op("Transpose", at, perm=[0, 2, 3, 1])
        mode = "bilinear" if self._opset < 20 else "linear"
        return self._op("GridSample", image, at, mode=mode, padding_mode=padding)

    def _slice(self, value: str, start: int, stop: int) -> str:
        ends = (self._shape(each) for each in (start, stop, 1))
        return self._op("Slice", value, *ends)

    def _reshape(self, value: str, *shape: int) -> str:
        return self._op("Reshape", value, self._shape(*shape))

    def _float(self, value: str) -> str:
        return self._op("Cast", value, to=TensorProto.FLOAT)

    def _channels(self, values: np.ndarray) -> str:
        return self._constant(np.asarray(values, np.float32).reshape(3, 1, 1))

    def _number(self, value: float) -> str:
        return self._constant(np.float32(value))

    def _shape(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, values: Any) -> str:
        name = self._name()
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self._named(self._name(), kind, *inputs, **attributes)

    def _named(self, name: str, kind: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [name], self._name(), **attributes))
        return name

    def _name(self) -> str:
        """A name that no network has."""
        self._names += 1
        return f"{EXACT}{self._names}"


def _opset(model: onnx.ModelProto) -> int:
    return max(int(each.version) for each in model.opset_import if each.domain in {"", "ai.onnx"})


def _at_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in a version of the operators that has what we need."""
    if _opset(model) >= _OPSET:
        return model
    try:
        return version_converter.convert_version(model, _OPSET)
    except Exception as error:
        raise proof.UnprovenError(f"it cannot be brought to opset {_OPSET}: {error}") from error


def _prove(source: Path, draft: Path, role: str, family: str, side: int) -> None:
    """See that both make the same of random faces."""
    found = FAMILIES[role, family].cut(side)
    made, rng = found.items[3][0], np.random.default_rng(0)
    count = onnxfile.read(source).items or 2
    crops = [rng.integers(0, 256, (made, made, 3), np.uint8) for _ in range(count)]
    more = [[rng.standard_normal(item, np.float32)] * count for item in found.items[4:]]
    faces = []
    for path, cutout in ((source, 0), (draft, side)):
        file = File(role, str(path), path.stat().st_size, "", path)
        model = Model(role, family, file, "", options={"cutout": cutout})
        try:
            engine = OnnxEngine(path, usable_cpus(), ports=families.ports(model))
            stage = cast("Generator", families.family_of(model).stage(engine, model))
            faces.append(stage.make(crops, *more))
        except Exception as error:
            said = " ".join(str(error).split())
            raise proof.UnprovenError(f"{path.name} cannot be run: {said}") from error
    worst = max(int(cv2.absdiff(*each).max()) for each in zip(*faces, strict=True))
    if worst > _WITHIN:
        raise proof.UnprovenError(f"what it makes of cutouts differs by {worst} levels of 255")
