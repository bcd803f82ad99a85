"""Settings of models at work."""

from __future__ import annotations

from dataclasses import dataclass

from warmup.settings.readers import amount, choice, part_or_amount, seconds, switch, whole, words
from warmup.settings.variables import variable


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the models run on, and how."""

    threads: int | None = variable(
        None,
        whole(1, 1024),
        "How many threads compute at once. When it is set, how a model that takes batches uses them"
        " is not measured: one thread for each inference, that many inferences at once.",
        shown_default="the CPU quota",
    )
    batch_window_ms: int = variable(
        25,
        whole(0, 1000),
        "How long, in milliseconds, a batch may wait for more items while another one is running,"
        " where a model has batch sizes above 1; never with an interactive request in it. With 0 no"
        " batch waits, not even while the CPUs are busy with other steps.",
    )
    backends: tuple[str, ...] = variable(
        ("cpu",),
        words("tensorrt", "cuda", "cpu"),
        "What the models may run on, the most wanted first. A model takes the first that runs it;"
        " `/readyz` says which were passed over, and why.",
        shown_default="cpu",
    )
    allow_degraded: bool = variable(
        False,
        switch(),
        "Whether a model may go from a GPU to the CPU, where `EMBER_BACKENDS` names both. From one"
        " GPU backend to the next it always may. `/readyz` and the header `Ember-Degraded` name"
        " each model that is not on the first.",
        shown_default="false",
    )
    require_gpu: bool = variable(
        False,
        switch(),
        "Whether everything has to run on a GPU, to the last operation of each model.",
        shown_default="false",
    )
    gpus: int = variable(
        1,
        whole(1, 64),
        "How many GPUs this process uses, of those that it can see. Each holds all models and runs"
        " a batch of its own.",
    )
    build_plans: bool = variable(
        False,
        switch(),
        "Whether a replica builds the plans that it lacks, in a process of its own, while the next"
        " of `EMBER_BACKENDS` serves. It needs the full TensorRT, and GPU memory to spare.",
        shown_default="false",
    )
    wait_vram_s: float = variable(
        0.0,
        seconds(0, 86400),
        "How long a start waits until the GPU has room for the models, as when the replica before"
        " has not let go of it yet; then it is tried regardless.",
    )
    cuda_search: str = variable(
        "heuristic",
        choice("heuristic", "exhaustive", "default"),
        "How cuDNN chooses an algorithm for each batch size, on the backend `cuda`: `exhaustive`"
        " tries all, which can take a second each during the warm-up, and may run faster then.",
    )
    cuda_memory: int | None = variable(
        None,
        amount(1),
        "The most bytes of GPU memory that one model's arena may take, on the backend `cuda`.",
        shown_default="any",
    )
    cuda_graphs: bool = variable(
        False,
        switch(),
        "Whether the backend `cuda` records each batch size as a CUDA graph: less work for the CPU,"
        " more memory, and no model that has anything on the CPU.",
        shown_default="false",
    )
    preload: bool = variable(
        True,
        switch(),
        "Whether models are loaded and warmed at start, not by the first request that needs them."
        " `preload = false` in the manifest excepts one model.",
        shown_default="true",
    )


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """How a replica becomes ready, and what tells that it still works."""

    warmup_requests: int = variable(
        1,
        whole(1, 1000),
        "How many swaps a replica makes, all at once, before it is ready. One is enough for speed;"
        " with one for each thread there is also proof that memory is enough for all of them.",
    )
    warmup_retry_s: float = variable(
        120.0,
        seconds(0, 86400),
        "How long a start that fails is tried again, in pauses from 1 to 30 seconds, before the"
        " process ends; 0 means that it ends at once.",
    )
    heartbeat_s: float = variable(
        30.0,
        seconds(0, 86400),
        "How long a replica is idle before it makes a swap of its own, to stay warm and to know"
        " that it works; 0 means never.",
    )
    stuck_s: float = variable(
        120.0,
        seconds(0, 86400),
        "How long one step of one request may compute before the process counts as stuck, and"
        " `/healthz` as failed; 0 means for ever.",
    )
    memory_soft_limit: float = variable(
        0.95,
        part_or_amount(),
        "How much memory the process may hold, in bytes or as a part of what the container may"
        " hold, before it drains and ends, ahead of the kernel; 0 means any amount.",
        shown_default="0.95",
    )
