"""BentoML: a service that loads in its constructor."""

import bentoml

from tests.bench.cold import swapping


@bentoml.service
class Swap:
    def __init__(self):
        self.swapping = swapping.Swap()

    @bentoml.api
    def swap(self, source: str, target: str) -> dict:
        return self.swapping.json({"source": source, "target": target})
