"""LitServe: an API that loads in `setup`."""

import os

import litserve

from tests.bench.cold.swapping import Swap


class Api(litserve.LitAPI):
    def setup(self, device):
        self.swap = Swap()

    def decode_request(self, request):
        return request

    def predict(self, x):
        return self.swap.json(x)

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    litserve.LitServer(Api(), accelerator="cpu").run(
        host="127.0.0.1", port=int(os.environ["PORT"]), generate_client_file=False
    )
