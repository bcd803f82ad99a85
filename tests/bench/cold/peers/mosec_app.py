"""mosec: a worker that loads in its constructor."""

from mosec import Server, Worker

from tests.bench.cold.swapping import Swap


class Inference(Worker):
    def __init__(self):
        self.swap = Swap()

    def forward(self, data):
        return self.swap.json(data)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Inference)
    server.run()
