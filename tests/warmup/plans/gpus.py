"""GPUs that this machine has not: what NVIDIA's library would say about them."""

from __future__ import annotations

from warmup.plans.nvml import Gpu

H100 = Gpu("GPU-1", "NVIDIA H100 80GB HBM3", "9.0", "580.65.06", "13.0")
RTX = Gpu("GPU-2", "NVIDIA GeForce RTX 4090", "8.9", "580.65.06", "13.0")
