"""One application for each peer, with its batching on, as its documentation says."""

import os

TUNED = os.environ.get("BENCH_TUNED") == "1"
WORKERS = len(os.sched_getaffinity(0)) if TUNED else 1
BATCH = 8
WAIT_MS = 10
"""How long a batch may wait for more requests, as in the examples of mosec and LitServe."""
TIMEOUT_S = float(os.environ.get("BENCH_TIMEOUT_S", "60"))
"""The deadline of all requests, as far as a server knows any."""
