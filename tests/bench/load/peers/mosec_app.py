"""mosec: a worker with `max_batch_size`; tuned, one worker for each CPU."""

from mosec import Server, Worker

from tests.bench.cold.swapping import Swap
from tests.bench.load.peers import BATCH, WAIT_MS, WORKERS


class Inference(Worker):
    def __init__(self):
        self.swap = Swap()

    def forward(self, data):
        return self.swap.jsons(data)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Inference, num=WORKERS, max_batch_size=BATCH, max_wait_time=WAIT_MS)
    server.run()
