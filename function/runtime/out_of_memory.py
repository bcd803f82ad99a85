"""Whether a failure means that memory ran out, so that a smaller batch may do."""

from __future__ import annotations

import re

from function.runtime.gpu.cuda_errors import is_shortage, lost_by

# What ONNX Runtime's allocators, CUDA, cuDNN, cuBLAS, TensorRT and C++ itself say.
_SAID = re.compile(
    r"out of memory|failed to allocate|bad.?alloc|smaller than requested bytes"
    r"|(CUDNN|CUBLAS)_STATUS_ALLOC_FAILED|insufficient memory|OutOfMemory",
    re.IGNORECASE,
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of the device or of the process; not where the device is lost."""
    said = str(error)
    if lost_by(said):
        return False
    return isinstance(error, MemoryError) or is_shortage(said) or bool(_SAID.search(said))
