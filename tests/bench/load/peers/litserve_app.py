"""LitServe: an API with `max_batch_size`; tuned, one worker for each CPU."""

import os

import litserve

from tests.bench.cold.swapping import Swap
from tests.bench.load.peers import BATCH, TIMEOUT_S, WAIT_MS, WORKERS


class Api(litserve.LitAPI):
    def setup(self, device):
        self.swap = Swap()

    def decode_request(self, request):
        return request

    def batch(self, inputs):
        return list(inputs)

    def predict(self, x):
        return self.swap.jsons(x)

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    api = Api(max_batch_size=BATCH, batch_timeout=WAIT_MS / 1e3)
    server = litserve.LitServer(
        api, accelerator="cpu", workers_per_device=WORKERS, timeout=TIMEOUT_S
    )
    server.run(host="127.0.0.1", port=int(os.environ["PORT"]), generate_client_file=False)
