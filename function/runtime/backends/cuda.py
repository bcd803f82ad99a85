"""How ONNX Runtime is to use a GPU: what operators choose, in the words of its provider."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cuda:
    """One GPU, and how it is used.

    Attributes:
        device: its number, as CUDA counts those that this process can see.
        search: how cuDNN chooses an algorithm for each new shape: "heuristic" takes milliseconds,
            "exhaustive" tries all and takes up to a second, "default" takes the first.
        limit: the most bytes of GPU memory that the arena of one model may take; None for any.
        graphs: whether each batch size is recorded once as a CUDA graph and then replayed.
        alone: whether a graph of which anything would run on the CPU is refused.
    """

    device: int = 0
    search: str = "heuristic"
    limit: int | None = None
    graphs: bool = False
    alone: bool = False

    def options(self) -> dict[str, str]:
        """The options of ONNX Runtime's CUDA provider.

        Its arena grows by what is asked for, not by doubling: buckets ask for the same sizes again
        and again, and what doubling takes beyond that, other models lack.
        """
        options = {
            "device_id": str(self.device),
            "cudnn_conv_algo_search": self.search.upper(),
            "arena_extend_strategy": "kSameAsRequested",
            "enable_cuda_graph": str(int(self.graphs)),
        }
        return options if self.limit is None else options | {"gpu_mem_limit": str(self.limit)}
