"""The floor: import what Ember imports, load the fastest way that is known, swap once, and say so.

No port, no checks, no warm-up. The models load while the rest is
imported.
"""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor

from tests.bench.cold import swapping

LIBRARIES = ("cv2", "PIL.Image", "aiohttp.web", "uvloop", "prometheus_client")


def main() -> None:
    """Swap the sample photos."""
    importlib.import_module("function.runtime.backends.optimised")
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(swapping.fast)
        for library in LIBRARIES:
            importlib.import_module(library)
        swap = swapping.Swap(loading.result())
    from function.service.service import sample

    swap(sample("hopper"), sample("collins"))
    print("swapped", flush=True)


if __name__ == "__main__":
    main()
