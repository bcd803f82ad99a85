"""ONNX graphs of random weights with the signatures of published models of faces.

Names, shapes and types of inputs and outputs are those of the real files, batches of one included
where these have them; what is between is as simple as it can be. Small graphs take milliseconds;
full-size ones weigh what the real ones do (17 MB for a detector, 174 for identity, 554 for a
swapper), so that loading and batching cost what they really cost. A seed decides all weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Dims = tuple[int | str, ...]

EMBEDDING = 512
STRIDES = (8, 16, 32)

ROLES = {
    "centerface": "detect",
    "scrfd": "detect",
    "retinaface": "detect",
    "yunet": "detect",
    "face_mesh_468": "landmarks",
    "insightface_2d106": "landmarks",
    "fan_68": "landmarks",
    "arcface": "identity",
    "inswapper_128": "swap",
    "simswap_256": "swap",
    "simswap_512": "swap",
    "ghost_256": "swap",
    "hyperswap_256": "swap",
    "uniface_256": "swap",
    "blendswap_256": "swap",
    "hififace_256": "swap",
    "gfpgan_512": "enhance",
    "codeformer_512": "enhance",
    "restoreformer_512": "enhance",
    "gpen_256": "enhance",
    "gpen_512": "enhance",
    "gpen_1024": "enhance",
    "gpen_2048": "enhance",
    "xseg": "occlusion",
    "bisenet": "region",
    "crossface": "convert",
    "open_nsfw": "gate",
    "insightface_genderage": "age",
    "fairface_9": "age",
}
"""The role of each family that can be made."""


def make(
    path: Path,
    family: str,
    *,
    full: bool = False,
    seed: int = 0,
    dynamic: bool | None = None,
    half: bool = False,
    shuffled: bool = False,
    outputs: Sequence[str] = (),
) -> Path:
    """Write the graph of one family.

    Args:
        path: of the .onnx file.
        family: a key of `ROLES`.
        full: whether it weighs what the real file does.
        seed: decides all weights.
        dynamic: whether it takes any number of items; None for what the real file does.
        half: whether weights and arithmetic are float16; inputs and outputs stay float32.
        shuffled: whether the initialisers come in another order than usual.
        outputs: other names for the outputs.
    """
    free = dynamic if dynamic is not None else family in _FREE
    net = _Net(np.random.default_rng(seed), np.float16 if half else np.float32, free)
    _MAKERS[family](net, full)
    model = net.model(family, outputs)
    if shuffled:
        order = np.random.default_rng(seed + 1).permutation(len(model.graph.initializer))
        tensors = [model.graph.initializer[n] for n in order]
        del model.graph.initializer[:]
        model.graph.initializer.extend(tensors)
    onnx.save(model, path)
    return path


_FREE = {"centerface", "insightface_2d106", "arcface", "xseg", "open_nsfw"}


class Style(NamedTuple):
    """Numbers [N, width] that style a picture, and how much they do."""

    value: str
    width: int
    gain: float


@dataclass
class _Net:
    """A graph on its way; names of values are given and taken as text."""

    rng: np.random.Generator
    kind: type[np.floating]
    free: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    emap: onnx.TensorProto | None = None

    @property
    def batch(self) -> int | str:
        return "N" if self.free else 1

    @property
    def half(self) -> bool:
        return self.kind is np.float16

    def input(self, name: str, *dims: int | str) -> str:
        shape = [self.batch, *dims]
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.op("Cast", name, to=TensorProto.FLOAT16) if self.half else name

    def number(self, name: str) -> str:
        """A single number for all items."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.DOUBLE, [1]))
        return self.op("Cast", name, to=TensorProto.FLOAT16 if self.half else TensorProto.FLOAT)

    def output(self, name: str, value: str, *dims: int | str) -> None:
        """Name a value as an output; `dims` are all of its axes."""
        if self.half:
            self.nodes.append(helper.make_node("Cast", [value], [name], to=TensorProto.FLOAT))
        else:
            self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"n_{name}", **attributes))
        return name

    def constant(self, values: Any, kind: Any = None) -> str:
        name = f"w{len(self.weights)}"
        array = np.asarray(values, kind or self.kind)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def random(self, *shape: int, scale: float) -> str:
        return self.constant(self.rng.standard_normal(shape, np.float32) * np.float32(scale))

    def reshape(self, value: str, *shape: int) -> str:
        """To a shape of which the first axis is that of items: baked as 1, or free."""
        return self.op("Reshape", value, self.constant([-1 if self.free else 1, *shape], np.int64))

    def conv(
        self,
        value: str,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        stride: int = 1,
        *,
        gain: float = 2.0,
        bias: float = 0.0,
    ) -> str:
        """A convolution that keeps the variance of its input, or with gain 2 that before a ReLU."""
        weights = self.random(
            outputs, inputs, kernel, kernel, scale=(gain / (inputs * kernel * kernel)) ** 0.5
        )
        offset = self.constant(self.rng.standard_normal(outputs) * 0.01 + bias)
        pad, strides = [kernel // 2] * 4, [stride, stride]
        return self.op("Conv", value, weights, offset, pads=pad, strides=strides)

    def relu(self, value: str) -> str:
        return self.op("Relu", value)

    def prelu(self, value: str, channels: int) -> str:
        return self.op("PRelu", value, self.constant(np.full((channels, 1, 1), 0.25)))

    def up(self, value: str, factor: int = 2) -> str:
        scales = self.constant([1, 1, factor, factor], np.float32)
        roi = self.constant([], np.float32)
        return self.op(
            "Resize",
            value,
            roi,
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )

    def linear(
        self, value: str, inputs: int, outputs: int, *, gain: float = 1.0, bias: float = 0.0
    ) -> str:
        weights = self.random(outputs, inputs, scale=(gain / inputs) ** 0.5)
        offset = self.constant(np.full(outputs, bias))
        return self.op("Gemm", value, weights, offset, transB=1)

    def normal(self, value: str) -> str:
        """Each channel of each item with mean 0 and deviation 1, step by step as exporters do."""
        mean = self.op("ReduceMean", value, axes=[2, 3], keepdims=1)
        centred = self.op("Sub", value, mean)
        squares = self.op("Mul", centred, centred)
        variance = self.op("ReduceMean", squares, axes=[2, 3], keepdims=1)
        deviation = self.op("Sqrt", self.op("Add", variance, self.constant(1e-3)))
        return self.op("Div", centred, deviation)

    def styled(self, value: str, channels: int, style: Style, way: str) -> str:
        """Adaptive instance normalisation.

        Args:
            value: [N, channels, H, W].
            channels: of the value.
            style: what scale and shift come from.
            way: how scale and shift become [N, channels, 1, 1]: "unsqueeze", a "reshape" of both,
                or a "split" along a second axis.
        """
        both = self.linear(style.value, style.width, 2 * channels, gain=style.gain)
        if way == "split":
            both = self.op("Reshape", both, self.constant([-1, 2, channels, 1, 1], np.int64))
            parts = [self.op("Gather", both, self.constant(n, np.int64), axis=1) for n in range(2)]
        else:
            if way == "unsqueeze":
                both = self.op("Unsqueeze", both, axes=[2, 3])
            else:
                both = self.reshape(both, 2 * channels, 1, 1)
            self.nodes.append(
                helper.make_node("Split", [both], [f"{both}_scale", f"{both}_shift"], axis=1)
            )
            parts = [f"{both}_scale", f"{both}_shift"]
        scale = self.op("Add", parts[0], self.constant(1.0))
        return self.op("Add", self.op("Mul", self.normal(value), scale), parts[1])

    def model(self, name: str, outputs: Sequence[str]) -> onnx.ModelProto:
        if self.emap:
            self.weights.append(self.emap)
        for old, new in zip(self.outputs, outputs, strict=bool(outputs)):
            for node in self.nodes:
                node.output[:] = [new if each == old.name else each for each in node.output]
            old.name = new
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        opset = [helper.make_opsetid("", 11)]
        return helper.make_model(graph, opset_imports=opset, ir_version=6, producer_name="pytorch")


def emap(path: Path) -> NDArray[np.float32]:
    """The identity projection of an inswapper graph, float32 [512, 512], wherever it is."""
    tensors = onnx.load(path).graph.initializer
    (found,) = (each for each in tensors if list(each.dims) == [EMBEDDING, EMBEDDING])
    return numpy_helper.to_array(found).astype(np.float32)


# --- detectors --------------------------------------------------------------------------------


def _pyramid(net: _Net, image: str, full: bool) -> tuple[list[str], int]:
    """Features at strides 8, 16 and 32, and how many channels each has."""
    widths = (28, 56, 88, 128, 224) if full else (4, 4, 8, 8, 8)
    blocks = (1, 2, 4, 3, 2) if full else (0, 0, 0, 0, 0)
    value, before, levels, head = image, 3, [], 80 if full else 8
    for width, count in zip(widths, blocks, strict=True):
        value = net.relu(net.conv(value, before, width, stride=2))
        for _ in range(count):
            inner = net.relu(net.conv(value, width, width))
            value = net.relu(net.op("Add", value, net.conv(inner, width, width, gain=0.1)))
        before = width
        levels.append(value)
    heads = zip(levels[2:], widths[2:], strict=True)
    return [net.normal(net.conv(each, width, head)) for each, width in heads], head


def _anchored(net: _Net, full: bool, name: str, sides: Dims, names: Sequence[str]) -> None:
    """Nine outputs, for two anchors in each cell: scores, boxes, points at strides 8, 16, 32."""
    levels, head = _pyramid(net, _scaled(net, net.input(name, 3, *sides)), full)
    for kind, (size, bias) in enumerate(((1, -2.5), (4, 2.0), (10, 0.0))):
        for n, (value, stride) in enumerate(zip(levels, STRIDES, strict=True)):
            found = net.conv(value, head, 2 * size, gain=1.0, bias=bias)
            if size == 4:
                found = net.relu(found)
            rows: Any = 2 * (640 // stride) ** 2
            if net.free:
                found = net.op("Transpose", found, perm=[0, 2, 3, 1])
                found = net.op("Reshape", found, net.constant([0, -1, size], np.int64))
                dims: Dims = (net.batch, rows, size)
            else:
                found = net.op("Transpose", found, perm=[2, 3, 0, 1])
                found = net.op("Reshape", found, net.constant([-1, size], np.int64))
                dims = (rows, size)
            if size == 1:
                found = net.op("Sigmoid", found)
            if sides[0] != 640:
                dims = tuple(f"rows{stride}" if each == rows else each for each in dims)
            net.output(names[kind * 3 + n], found, *dims)


def _scrfd(net: _Net, full: bool) -> None:
    names = ("448", "471", "494", "451", "474", "497", "454", "477", "500")
    _anchored(net, full, "input.1", ("?", "?"), names)


def _retinaface(net: _Net, full: bool) -> None:
    kinds = ("score", "bbox", "kps")
    names = [f"{kind}_{stride}" for kind in kinds for stride in STRIDES]
    _anchored(net, full, "input", (640, 640), names)


def _yunet(net: _Net, full: bool) -> None:
    levels, head = _pyramid(net, _scaled(net, net.input("input", 3, 640, 640), 128), full)
    kinds = (("cls", 1, -1.0), ("obj", 1, -1.0), ("bbox", 4, 0.5), ("kps", 10, 0.0))
    for kind, size, bias in kinds:
        for value, stride in zip(levels, STRIDES, strict=True):
            found = net.conv(value, head, size, gain=1.0, bias=bias)
            found = net.op("Transpose", found, perm=[0, 2, 3, 1])
            rows = (640 // stride) ** 2
            found = net.reshape(found, rows, size)
            if size == 1:
                found = net.op("Sigmoid", found)
            net.output(f"{kind}_{stride}", found, net.batch, rows, size)


def _centerface(net: _Net, full: bool) -> None:
    image = _scaled(net, net.input("input.1", 3, "H", "W"), 128)
    width = 64 if full else 4
    value = net.relu(net.conv(image, 3, width, stride=4))
    down = net.relu(net.conv(value, width, width, stride=4))  # so that sides are multiples
    value = net.op("Add", value, net.up(net.relu(net.conv(down, width, width, stride=2)), 8))
    for name, size, bias in (("537", 1, -3.0), ("538", 2, 1.0), ("539", 2, 0.0), ("540", 10, 0.3)):
        found = net.conv(value, width, size, gain=0.5, bias=bias)
        if name == "537":
            found = net.op("Sigmoid", found)
        net.output(name, found, net.batch, size, "h", "w")


def _scaled(net: _Net, value: str, divisor: float = 1) -> str:
    return value if divisor == 1 else net.op("Div", value, net.constant(float(divisor)))


# --- landmarks and identity ---------------------------------------------------------------------


def _face_mesh(net: _Net, full: bool) -> None:
    image = net.op("Transpose", net.input("input_1", 192, 192, 3), perm=[0, 3, 1, 2])
    value, width = _shrunk(net, image, 3, 192, 6, 32 if full else 4)
    points = _crowd(net, value, width, 6, 1404, scale=192)
    logit = net.conv(value, width, 1, kernel=1, bias=30.0)
    logit = net.op("ReduceMean", logit, axes=[2, 3], keepdims=1)
    net.output("conv2d_20", net.reshape(points, 1, 1, 1404), net.batch, 1, 1, 1404)
    net.output("conv2d_30", net.reshape(logit, 1, 1, 1), net.batch, 1, 1, 1)


def _insightface_2d106(net: _Net, full: bool) -> None:
    image = net.op("Mul", net.input("data", 3, 192, 192), net.constant(1 / 128))
    value, width = _shrunk(net, image, 3, 192, 6, 32 if full else 4)
    net.output("fc1", _crowd(net, value, width, 6, 212, scale=0), net.batch, 212)


def _fan_68(net: _Net, full: bool) -> None:
    width = 96 if full else 4
    value = net.relu(net.conv(net.input("input", 3, 256, 256), 3, width, stride=4, kernel=7))
    for _ in range(8 if full else 1):
        value = net.relu(net.conv(value, width, width))
    heat = net.op("Sigmoid", net.conv(value, width, 68, gain=1.0))
    lower = net.op("ReduceMax", heat, axes=[2, 3], keepdims=0)
    points = _crowd(net, value, width, 64, 136, scale=64)
    points = net.reshape(points, 68, 2)
    scores = net.op("Unsqueeze", lower, axes=[2])
    both = net.op("Concat", points, scores, axis=2)
    net.output("landmarks_xyscore", both, net.batch, 68, 3)
    net.output("heatmaps", heat, net.batch, 68, 64, 64)


def _shrunk(net: _Net, value: str, before: int, side: int, end: int, width: int) -> tuple[str, int]:
    """An image [N, before, side, side] at a side of `end`, and how many channels it has then."""
    for _ in range(int(log2(side // end))):
        value = net.relu(net.conv(value, before, width, stride=2))
        before, width = width, min(width * 2, 256 if width > 8 else 8)
    return value, before


def _crowd(net: _Net, value: str, width: int, side: int, count: int, scale: float) -> str:
    """Numbers [N, count] from features [N, width, side, side].

    Args:
        scale: what they lie around the middle of, from 0; 0 for numbers from -1 to 1.
    """
    if side > 8:
        value = net.op("AveragePool", value, kernel_shape=[side // 8] * 2, strides=[side // 8] * 2)
        side = 8
    flat = net.op("Flatten", value, axis=1)
    found = net.linear(flat, width * side * side, count, gain=1.0)
    if not scale:
        return net.op("Tanh", found)
    return net.op("Mul", net.op("Sigmoid", found), net.constant(float(scale)))


def _arcface(net: _Net, full: bool) -> None:
    widths = (64, 128, 256, 512) if full else (2, 4, 8, 8)
    blocks = (3, 4, 14, 3) if full else (1, 1, 1, 1)
    before = widths[0]
    value = net.prelu(net.conv(net.input("input.1", 3, 112, 112), 3, before), before)
    for width, count in zip(widths, blocks, strict=True):
        for n in range(count):
            stride = 1 if n else 2
            inner = net.prelu(net.conv(value, before, width), width)
            inner = net.conv(inner, width, width, stride=stride, gain=0.1)
            if stride == 2:
                value = net.conv(value, before, width, kernel=1, stride=2, gain=1.0)
            value, before = net.op("Add", value, inner), width
    flat = net.op("Flatten", value, axis=1)
    found = net.linear(flat, before * 49, EMBEDDING)
    net.output("683", found, net.batch, EMBEDDING)


# --- what pictures show, and how old people look ------------------------------------------------


def _open_nsfw(net: _Net, full: bool) -> None:
    image = net.op("Transpose", net.input("input:0", 224, 224, 3), perm=[0, 3, 1, 2])
    value, width = _shrunk(net, _scaled(net, image, 128), 3, 224, 7, 32 if full else 4)
    logits = net.linear(net.op("Flatten", value, axis=1), width * 49, 2)
    net.output("outputs", net.op("Softmax", logits, axis=1), net.batch, 2)


def _classified(side: int, count: int) -> Callable[[_Net, bool], None]:
    def make(net: _Net, full: bool) -> None:
        image = _scaled(net, net.input("data", 3, side, side), 255 if side == 96 else 1)
        end = side // 16
        value, width = _shrunk(net, image, 3, side, end, 32 if full else 4)
        found = net.linear(net.op("Flatten", value, axis=1), width * end * end, count)
        net.output("fc1", found, net.batch, count)

    return make


# --- swappers, enhancers, masks -----------------------------------------------------------------


def _generator(
    net: _Net,
    image: str,
    side: int,
    widths: Sequence[int],
    blocks: int,
    style: Style | None = None,
    *,
    way: str = "unsqueeze",
    first: int = 1,
    outputs: int = 3,
) -> tuple[str, str]:
    """Down, some residual blocks, and up again: [N, 3, side, side] to [N, outputs, side, side].

    Args:
        widths: the channels at the full side and at each half of it.
        blocks: residual blocks of two convolutions at the lowest side.
        style: what they are styled by.
        way: see `_Net.styled`.
        first: the stride of the first convolution.

    Returns:
        The result before any bound, and what the last but one convolution made.
    """
    value = net.relu(net.conv(image, 3, widths[0], kernel=7, stride=first))
    for before, width in pairwise(widths):
        value = net.relu(net.conv(value, before, width, stride=2))
    deep = widths[-1]
    for _ in range(blocks):
        inner = value
        for last in (False, True):
            inner = net.conv(inner, deep, deep)
            if style:
                inner = net.styled(inner, deep, style, way)
            inner = inner if last else net.relu(inner)
        value = net.op("Add", value, net.op("Mul", inner, net.constant(0.5)))
    for before, width in pairwise(reversed(widths)):
        value = net.relu(net.conv(net.up(value), before, width))
    found = net.conv(value, widths[0], outputs, kernel=7, gain=0.3)
    return (net.up(found, first) if first > 1 else found), value


def _swapper(
    side: int,
    way: str,
    *,
    bound: str = "unit",
    source: int = 0,
    gain: float = 20.0,
    mask: bool = False,
    order: tuple[str, str] = ("source", "target"),
) -> Callable[[_Net, bool], None]:
    """A swapper.

    Args:
        side: of the target, square.
        way: see `_Net.styled`.
        bound: "unit" for results from 0 to 1, "signed" from -1 to 1.
        source: the side of the source image; 0 for an embedding.
        gain: how much an embedding styles; 20 is right for one of length 1.
        mask: whether there is a second output.
        order: in which the inputs come.
    """

    def build(net: _Net, full: bool) -> None:
        widths = (128, 256, 512, 1024) if full else (4, 4, 8, 12)
        inputs = {
            "target": (3, side, side),
            "source": (3, source, source) if source else (EMBEDDING,),
        }
        named = {name: net.input(name, *inputs[name]) for name in order}
        style = Style(named["source"], EMBEDDING, gain)
        if source:
            value, width = _shrunk(net, style.value, 3, source, source // 16, 32 if full else 4)
            value = net.op("Flatten", net.op("GlobalAveragePool", value), axis=1)
            style = Style(value, width, 0.1)
        found, features = _generator(
            net,
            named["target"],
            side,
            widths,
            6 if full else 2,
            style,
            way=way,
            first=side // 128,
        )
        result = net.op("Tanh", found)
        if bound == "unit":
            half = net.constant(0.5)
            result = net.op("Add", net.op("Mul", result, half), half)
        net.output("output", result, net.batch, 3, side, side)
        if mask:
            shape = net.op("Sigmoid", net.conv(features, widths[0], 1, gain=1.0))
            if side > 128:
                shape = net.up(shape, side // 128)
            net.output("mask", shape, net.batch, 1, side, side)

    return build


def _inswapper(net: _Net, full: bool) -> None:
    _swapper(128, "unsqueeze", order=("target", "source"))(net, full)
    matrix = net.rng.standard_normal((EMBEDDING, EMBEDDING), np.float32) / EMBEDDING**0.5
    net.emap = numpy_helper.from_array(matrix.astype(net.kind), "buff2fs")


def _enhancer(side: int, *, weighted: bool = False) -> Callable[[_Net, bool], None]:
    def build(net: _Net, full: bool) -> None:
        image = net.input("input", 3, side, side)
        widths = (64, 128, 256, 512, 1024) if full else (4, 4, 4, 8)
        found, _ = _generator(net, image, side, widths, 4 if full else 1, first=side // 128)
        if weighted:
            weight = net.number("weight")
            weight = net.op("Unsqueeze", weight, axes=[1, 2, 3])
            found = net.op("Mul", found, net.op("Add", weight, net.constant(0.5)))
        net.output("output", net.op("Tanh", found), net.batch, 3, side, side)

    return build


def _xseg(net: _Net, full: bool) -> None:
    image = net.op("Transpose", net.input("input", 256, 256, 3), perm=[0, 3, 1, 2])
    widths = (64, 128, 256, 512) if full else (4, 4, 8)
    found, _ = _generator(net, image, 256, widths, 2 if full else 1, first=2, outputs=1)
    mask = net.op("Transpose", net.op("Sigmoid", found), perm=[0, 2, 3, 1])
    net.output("output", mask, net.batch, 256, 256, 1)


def _bisenet(net: _Net, full: bool) -> None:
    image = net.input("input", 3, 512, 512)
    widths = (64, 128, 256, 512) if full else (4, 4, 8)
    found, _ = _generator(net, image, 512, widths, 2 if full else 1, first=4, outputs=19)
    net.output("output", found, net.batch, 19, 512, 512)


def _crossface(net: _Net, full: bool) -> None:
    width = 1024 if full else 64
    value = net.relu(net.linear(net.input("input", EMBEDDING), EMBEDDING, width, gain=2.0))
    net.output("output", net.linear(value, width, EMBEDDING), net.batch, EMBEDDING)


_MAKERS: dict[str, Callable[[_Net, bool], None]] = {
    "centerface": _centerface,
    "scrfd": _scrfd,
    "retinaface": _retinaface,
    "yunet": _yunet,
    "face_mesh_468": _face_mesh,
    "insightface_2d106": _insightface_2d106,
    "fan_68": _fan_68,
    "arcface": _arcface,
    "inswapper_128": _inswapper,
    "simswap_256": _swapper(256, "split"),
    "simswap_512": _swapper(512, "split"),
    "ghost_256": _swapper(256, "reshape", bound="signed", gain=0.1, order=("target", "source")),
    "hyperswap_256": _swapper(256, "unsqueeze", bound="signed", mask=True),
    "uniface_256": _swapper(256, "reshape", bound="signed", source=256),
    "blendswap_256": _swapper(256, "unsqueeze", source=112),
    "hififace_256": _swapper(256, "reshape", bound="signed"),
    "gfpgan_512": _enhancer(512),
    "codeformer_512": _enhancer(512, weighted=True),
    "restoreformer_512": _enhancer(512),
    "gpen_256": _enhancer(256),
    "gpen_512": _enhancer(512),
    "gpen_1024": _enhancer(1024),
    "gpen_2048": _enhancer(2048),
    "xseg": _xseg,
    "bisenet": _bisenet,
    "crossface": _crossface,
    "open_nsfw": _open_nsfw,
    "insightface_genderage": _classified(96, 3),
    "fairface_9": _classified(224, 9),
}
