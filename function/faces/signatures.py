"""Which family a graph belongs to, by the shapes of what goes in and comes out.

Some families have the same shapes; the name of the file tells these apart, as their publishers give
it, and nothing else can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.runtime.onnxfile import Graph, GraphValue

    Item = tuple[int | None, ...]

PROJECTION = (512, 512)
"""The shape of the array with which inswapper projects an embedding, and of no other in it."""

_EMBEDDING: Item = (512,)


@dataclass(frozen=True, slots=True)
class Signature:
    """The shapes of one family.

    Attributes:
        role: the stage that it serves.
        family: its name in a manifest.
        inputs: the shape of one item for each input, in any order; None for any number.
        outputs: the same for each output, in their order.
        word: what the file's name has when other families have these shapes as well; empty for the
            one that it is without such a word.
        tensor: the shape of an initialiser that it must have.
        more: whether there may be further outputs.
    """

    role: str
    family: str
    inputs: tuple[Item, ...]
    outputs: tuple[Item, ...]
    word: str = ""
    tensor: tuple[int, ...] = ()
    more: bool = False

    def fits(self, graph: Graph) -> bool:
        """Whether a graph has these shapes."""
        if self.tensor and all(each.dims != self.tensor for each in graph.tensors):
            return False
        outputs = graph.outputs[: len(self.outputs)] if self.more else graph.outputs
        return _unordered(graph.inputs, self.inputs) and _ordered(outputs, self.outputs)


def _square(side: int | None, channels: int = 3) -> Item:
    return (channels, side, side)


def _swapper(family: str, side: int, source: Item, *, word: str = "") -> Signature:
    return Signature("swap", family, (_square(side), source), (_square(side),), word)


def _enhancer(family: str, side: int, *, word: str = "") -> Signature:
    return Signature("enhance", family, (_square(side),), (_square(side),), word)


def _anchored(family: str, rows: tuple[None, ...], word: str = "") -> Signature:
    """Scores, boxes and points at three strides; `rows` is empty where items have no axis."""
    outputs = tuple((*rows, size) for size in (1, 4, 10) for _ in range(3))
    return Signature("detect", family, (_square(None),), outputs, word)


_MAPS = tuple((size, None, None) for size in (1, 2, 2, 10))
_YUNET = tuple((None, size) for size in (1, 1, 4, 10) for _ in range(3))

SIGNATURES = (
    Signature("detect", "centerface", (_square(None),), _MAPS),
    _anchored("scrfd", ()),
    _anchored("scrfd", (None,)),
    _anchored("retinaface", (), "retinaface"),
    _anchored("retinaface", (None,), "retinaface"),
    Signature("detect", "yunet", (_square(None),), _YUNET),
    Signature("landmarks", "face_mesh_468", ((192, 192, 3),), ((1, 1, 1404), (1, 1, 1))),
    Signature("landmarks", "insightface_2d106", (_square(192),), ((212,),)),
    Signature("landmarks", "fan_68", (_square(256),), ((68, 3), (68, 64, 64))),
    Signature("identity", "face_identity_128", ((150, 150, 3),), ((128,),)),
    Signature("identity", "arcface", (_square(112),), (_EMBEDDING,)),
    Signature(
        "swap",
        "inswapper_128",
        (_square(128), _EMBEDDING),
        (_square(128),),
        tensor=PROJECTION,
    ),
    Signature(
        "swap",
        "hyperswap_256",
        (_square(256), _EMBEDDING),
        (_square(256), _square(256, channels=1)),
    ),
    _swapper("simswap_256", 256, _EMBEDDING, word="simswap"),
    _swapper("ghost_256", 256, _EMBEDDING, word="ghost"),
    _swapper("hififace_256", 256, _EMBEDDING, word="hififace"),
    _swapper("hyperswap_256", 256, _EMBEDDING, word="hyperswap"),
    _swapper("simswap_512", 512, _EMBEDDING),
    _swapper("uniface_256", 256, _square(256)),
    _swapper("blendswap_256", 256, _square(112)),
    Signature("enhance", "codeformer_512", (_square(512), ()), (_square(512),), more=True),
    _enhancer("gpen_256", 256),
    _enhancer("gfpgan_512", 512, word="gfpgan"),
    _enhancer("restoreformer_512", 512, word="restoreformer"),
    _enhancer("gpen_512", 512, word="gpen"),
    _enhancer("gpen_1024", 1024),
    _enhancer("gpen_2048", 2048),
    Signature("occlusion", "xseg", ((256, 256, 3),), ((256, 256, 1),)),
    Signature("region", "bisenet", (_square(512),), (_square(512, channels=19),), more=True),
    Signature("convert", "crossface", (_EMBEDDING,), (_EMBEDDING,)),
    Signature("gate", "open_nsfw", ((224, 224, 3),), ((2,),)),
    Signature("age", "insightface_genderage", (_square(96),), ((3,),)),
    Signature("age", "fairface_9", (_square(224),), ((9,),)),
)


def candidates(graph: Graph) -> tuple[Signature, ...]:
    """The families whose shapes a graph has; empty when it is of none."""
    return tuple(each for each in SIGNATURES if each.fits(graph))


def recognise(graph: Graph) -> Signature | None:
    """The family of a graph; None when there is none, or several and its name does not decide."""
    found = candidates(graph)
    name = graph.path.name.lower()
    named = [each for each in found if each.word and each.word in name]
    plain = [each for each in found if not each.word]
    best = named or plain or (found if len(found) == 1 else [])
    return best[0] if len(best) == 1 else None


def seen(graph: Graph) -> str:
    """The inputs and outputs of a graph, for a message about one that was not recognised."""
    inputs, outputs = (_shapes(each) for each in (graph.inputs, graph.outputs))
    return f"takes {inputs} and gives {outputs}"


def _shapes(values: Sequence[GraphValue]) -> str:
    return ", ".join(f"{each.name} [{', '.join(map(str, each.dims))}]" for each in values)


def _unordered(values: Sequence[GraphValue], items: Sequence[Item]) -> bool:
    left = list(values)
    for item in items:
        fitting = next((each for each in left if _fits(each, item)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return not left


def _ordered(values: Sequence[GraphValue], items: Sequence[Item]) -> bool:
    return len(values) == len(items) and all(map(_fits, values, items))


def _fits(value: GraphValue, item: Item) -> bool:
    """Whether a value may have the shape of an item; a free axis may have any length."""
    if len(value.item) != len(item):
        return False
    return all(
        wanted is None or isinstance(got, str) or got == wanted
        for got, wanted in zip(value.item, item, strict=True)
    )
