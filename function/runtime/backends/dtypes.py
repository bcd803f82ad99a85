"""Types of numbers at the seam: float32, or bytes, outside, whatever the graph wants inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import DTypeLike, NDArray

_OF_ONNX = {
    "float": np.float32,
    "float16": np.float16,
    "double": np.float64,
    "uint8": np.uint8,
    "int8": np.int8,
    "int32": np.int32,
    "int64": np.int64,
    "bool": np.bool_,
}


def of_onnx(name: str, what: str) -> np.dtype[np.generic]:
    """The type that ONNX Runtime calls e.g. "tensor(float16)".

    Args:
        name: ONNX Runtime's.
        what: what has it, for the message.

    Raises:
        ValueError: there are no arrays of that type.
    """
    found = _OF_ONNX.get(name.removeprefix("tensor(").removesuffix(")"))
    if found is None:
        raise ValueError(f"{what} is a {name}, which is not supported")
    return np.dtype(found)


def inward(array: NDArray[np.float32], dtype: DTypeLike) -> NDArray[np.generic]:
    """An input as the graph wants it, contiguous; the same array where it is that already.

    Whole numbers are rounded to, and kept within, what the type can hold.
    """
    wanted = np.dtype(dtype)
    if wanted.kind in "iu" and array.dtype != wanted:
        limits = np.iinfo(wanted)
        array = np.clip(np.rint(array), limits.min, limits.max)
    return np.ascontiguousarray(array, wanted)


def outward(arrays: Iterable[NDArray[np.generic]]) -> list[NDArray[np.float32]]:
    """Outputs as everyone else wants them; the same arrays where they are float32 already.

    Bytes stay bytes, as pictures would become four times as large.
    """
    return [plain(array) for array in arrays]


def plain(array: NDArray[Any], *, copy: bool = False) -> NDArray[Any]:
    """An output as everyone else wants it; see `outward`."""
    return array.astype(array.dtype if array.dtype == np.uint8 else np.float32, copy=copy)
