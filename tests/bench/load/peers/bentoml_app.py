"""BentoML: a batchable API, which takes a list; tuned, one worker for each CPU."""

import bentoml

from tests.bench.cold import swapping
from tests.bench.load.peers import BATCH, TIMEOUT_S, WORKERS


@bentoml.service(workers=WORKERS, traffic={"timeout": TIMEOUT_S})
class Swap:
    def __init__(self):
        self.swapping = swapping.Swap()

    @bentoml.api(batchable=True, max_batch_size=BATCH, max_latency_ms=int(TIMEOUT_S * 1e3))
    def swap(self, photos: list[dict[str, str]]) -> list[dict[str, str]]:
        return self.swapping.jsons(photos)
