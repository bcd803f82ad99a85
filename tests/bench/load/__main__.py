"""`make bench-load`: Ember and others under load, with the same models and the same swaps.

For both sets of models: the best bare loop; closed loops of 1 to 64 clients; requests that come at
random at 10 to 150 % of what each server was found to do, with a deadline; interactive requests
beside a saturating bulk load. All take turns at each point, so that the machine's drift hits all,
and all but the one whose turn it is are stopped: some peers look for work all the time.

Each server gets a share of its own capacity, not of one for all: so each is compared where it is
meant to work, and a slow one is not measured in its collapse only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import numpy as np
import psutil

from function.process.wiring.service import embedded
from function.request_context import Lane
from tests.bench.load import mix, servers
from tests.bench.load.ceiling import Ceiling, Cell, Loop, grid
from tests.bench.load.traffic import Stream, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.bench.load.servers import Server

SIZES = (1, 2, 4, 8, 16)
STORE = Path("build/bench-load/store").absolute()
SATURATED = 16
LOADS = {0.1: 0.6, 0.5: 0.7, 0.8: 1.4, 1.0: 0.8, 1.5: 1.4}
"""Shares of the capacity, and how long each is sent, in units of `Scale.open_s`."""
LONE_SWAPS = 20
"""The deadline, in swaps that are alone on the machine: two full batches of a peer, and a half."""
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How long everything is measured: rounds, and seconds of a point in each or (open) in all."""

    rounds: int = 2
    bare_s: float = 1.0
    closed_s: float = 3.0
    open_s: float = 12.0
    documented: bool = True
    clients: tuple[int, ...] = (1, 4, 16, 64)
    loads: tuple[float, ...] = tuple(LOADS)


QUICK = Scale(
    rounds=1,
    bare_s=0.3,
    closed_s=1.5,
    open_s=3.0,
    documented=False,
    clients=(1, 16),
    loads=(0.8, 1.5),
)


@dataclass(slots=True)
class Found:
    """What was measured of one set of models.

    Attributes:
        bare: the bare loop, by way.
        closed: by server and number of clients, one for each round.
        open: by server and share of its capacity.
        rates: the capacity of each server, swaps per second.
        lanes: seconds of interactive swaps without and with a bulk load.
        bulk: swaps per second of that load, one for each round.
        batch_s: what a full batch of the dearest model costs.
        deadline: of the requests that come at random, in seconds.
        again: of requests at the highest load that came again when they were told to.
        shares: CPU that the load generator took, in CPUs, of each measurement.
    """

    bare: dict[Cell, list[Loop]] = field(default_factory=lambda: defaultdict(list))
    closed: dict[str, dict[int, list[Stream]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    open: dict[str, dict[float, Stream]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: Stream(0.0)))
    )
    rates: dict[str, float] = field(default_factory=dict)
    lanes: dict[bool, list[float]] = field(default_factory=lambda: defaultdict(list))
    bulk: list[float] = field(default_factory=list)
    batch_s: float = 0.0
    deadline: float = 0.0
    again: Stream = field(default_factory=lambda: Stream(0.0))
    shares: list[float] = field(default_factory=list)

    def of(self, name: str, clients: int) -> list[float]:
        """Seconds of the swaps in closed loops of so many clients."""
        return [took for stream in self.closed[name][clients] for took in stream.times]

    def ceiling(self, cell: Cell) -> float:
        """Swaps per second of one bare loop."""
        return statistics.median(each.rate for each in self.bare[cell])

    def capacity(self, name: str) -> float:
        """The most swaps per second of any closed loop."""
        return max(
            statistics.median(stream.rate for stream in streams)
            for streams in self.closed[name].values()
        )


def main() -> int:
    """Measure and print; 1 when a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="short, without untuned peers")
    options.add_argument("--sets", default="embedded,batching")
    options.add_argument("--only", default="", help="names of the peers, separated by commas")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end what was started
    shutil.rmtree(STORE / "tuned", ignore_errors=True)  # this machine may have been busy then
    manifests = {
        "embedded": (embedded(), None),
        "batching": (mix.batching(SIZES), mix.batching(SIZES[:1])),
    }
    names = {name for name in chosen.only.split(",") if name}
    scale, met = QUICK if chosen.quick else Scale(), True
    for name in chosen.sets.split(","):
        began = time.monotonic()
        found = measured(*manifests[name], scale, names)
        print(f"\n### Set `{name}`\n")
        met &= report(found, scale)
        print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0 if met else 1


def measured(manifest: Path, single: Path | None, scale: Scale, names: set[str]) -> Found:
    """Measure one set of models.

    Args:
        manifest: of the set.
        single: the same without batches, if there are any in it.
        scale: how long.
        names: which peers; all if there are none.
    """
    found, environ = Found(), environment(manifest)
    with Ceiling(environ) as ceiling:
        for cell in grid():
            once = ceiling.loop(cell, scale.bare_s)
            found.bare[cell].append(once)
            found.deadline = found.deadline or round(LONE_SWAPS * once.took, 1)  # first alone
        chosen = [
            each
            for each in servers.everyone(PATIENCE_S)
            if each.name in {"Ember", *(names or {each.name})}
            and (each.name == "Ember" or each.tuned or scale.documented)
        ]
        environs = [environ] * len(chosen)
        if single:
            chosen.insert(1, servers.ember("Ember, batching off"))  # right after Ember
            environs.insert(1, environment(single))
        tell(f"deadline {found.deadline} s; starting servers")
        with servers.started(chosen, environs) as running:
            closed(found, running, ceiling, scale)
            with servers.awake(running.values(), running["Ember"]):
                lanes(found, running["Ember"], scale)
    chosen = [each for each in chosen if each.name == "Ember" or each.tuned]
    deadline = {"BENCH_TIMEOUT_S": str(found.deadline)}
    again = [
        each
        for each in servers.everyone(found.deadline)
        if each.label in {server.label for server in chosen}
    ]
    with servers.started(again, [environ | deadline] * len(again)) as running:
        arrivals(found, running, scale)
        with servers.awake(running.values(), running["Ember"]):
            retries(found, running["Ember"], scale)
    return found


def environment(manifest: Path) -> dict[str, str]:
    """What all servers are started with."""
    Path("build/bench-cold").mkdir(parents=True, exist_ok=True)  # logs of the servers
    return os.environ | {
        "EMBER_MANIFEST": str(manifest),
        "EMBER_STORE": str(STORE),
        "EMBER_LOG_LEVEL": "warning",
        "EMBER_DRAIN_GRACE_S": "0",
        "EMBER_HEARTBEAT_S": "0",  # else it swaps while others are measured
        "PYTHONPATH": str(Path.cwd()),
        "BENTOML_HOME": str(Path("build/bench-load/bentoml").absolute()),
        "BENTOML_DO_NOT_TRACK": "True",
    }


def closed(found: Found, running: dict[str, Server], ceiling: Ceiling, scale: Scale) -> None:
    """Closed loops; those of untuned peers at saturation only."""
    for server in running.values():
        loop(found, server, 2, 1.0)  # warm
    best = sorted(found.bare, key=lambda cell: found.bare[cell][0].rate)[-2:]
    for _ in range(scale.rounds):
        for clients in scale.clients:
            for name, server in running.items():
                if ("off" in name and clients > 1) or (
                    name != "Ember" and "," not in name and clients != SATURATED
                ):
                    continue
                seconds = scale.closed_s * (1 + (clients >= SATURATED))
                with servers.awake(running.values(), server):
                    found.closed[name][clients].append(loop(found, server, clients, seconds))
            if clients == SATURATED:
                with servers.awake(running.values()):
                    for cell in best:
                        found.bare[cell].append(ceiling.loop(cell, 2 * scale.closed_s))


def loop(found: Found, server: Server, clients: int, seconds: float) -> Stream:
    """One closed loop."""
    traffic, before = Traffic(server.port, PATIENCE_S), server.cpu_s()
    (stream,), share = traffic.run(lambda t: t.closed(server.request, clients, seconds))
    stream.cpu = (server.cpu_s() - before) / max(1, len(stream.times))
    tell(
        f"{server.name}, {clients} clients: {stream.rate:.1f} swaps/s,"
        f" p50 {percentile(stream.times, 50):.0f} ms, CPU {stream.cpu * 1e3:.0f} ms"
    )
    found.shares.append(share)
    server.settle()
    return stream


def lanes(found: Found, server: Server, scale: Scale) -> None:
    """One interactive client, with and without a bulk load beside it."""
    urgent = server.with_headers(Ember_Lane=Lane.INTERACTIVE)
    bulk = server.with_headers(Ember_Lane=Lane.BULK)
    traffic = Traffic(server.port, PATIENCE_S)
    for _ in range(scale.rounds):
        for crowd in (False, True):
            jobs = [lambda t: t.closed(urgent, 1, 2 * scale.closed_s, pause=0.02)]
            if crowd:
                jobs.append(lambda t: t.closed(bulk, SATURATED, 2 * scale.closed_s))
            streams, _ = traffic.run(*jobs)
            found.lanes[crowd] += streams[0].times
            if crowd:
                found.bulk.append(streams[1].rate)
                found.batch_s = max(found.batch_s, dearest(server.port))
            tell(f"interactive, bulk beside it: {crowd}")
            server.settle()


def dearest(port: int) -> float:
    """Seconds of a full batch of the model that takes longest, as Ember has learned."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line.startswith("ember_batch_"))

    def of(metric: str, role: str) -> float:
        return float(values[f'ember_batch_{metric}{{role="{role}"}}'])

    return max(
        of("base_seconds", role) + of("item_seconds", role) * of("cap", role)
        for role in ("detect", "landmarks", "identity")
    )


def arrivals(found: Found, running: dict[str, Server], scale: Scale) -> None:
    """Requests that come at random, with a deadline."""
    for name, server in running.items():
        loop(found, server, 2, 1.0)
        found.rates[name] = found.capacity(name)
    for turn, share in product(range(scale.rounds), scale.loads):
        for name, server in running.items():
            request = server.request
            if name == "Ember":
                request = server.with_headers(Request_Timeout=str(found.deadline))
            traffic, rate = Traffic(server.port, 3 * found.deadline), share * found.rates[name]
            send = partial(
                Traffic.open,
                request=request,
                rate=rate,
                seconds=LOADS[share] * scale.open_s / scale.rounds,
                seed=turn,
            )
            with servers.awake(running.values(), server):
                (stream,), taken = traffic.run(send)
                server.settle()
            tell(
                f"{name}, {share:.0%}: {stream.goodput(found.deadline):.1f} of {rate:.1f}/s in time"
            )
            found.open[name][share].add(stream)
            found.shares.append(taken)


def retries(found: Found, server: Server, scale: Scale) -> None:
    """More than Ember can do, by clients that come again when they are told to."""
    request = server.with_headers(Request_Timeout=str(found.deadline))
    traffic, share = Traffic(server.port, 3 * PATIENCE_S), max(scale.loads)
    send = partial(
        Traffic.open,
        request=request,
        rate=share * found.rates["Ember"],
        seconds=scale.open_s,
        seed=scale.rounds,
        again=True,
    )
    (stream,), _ = traffic.run(send)
    server.settle()
    tell(f"Ember, {share:.0%}: {stream.let_in:.0%} of {len(stream.again)} retries are let in")
    found.again.add(stream)


def report(found: Found, scale: Scale) -> bool:
    """Print all tables and goals; whether every goal is met."""
    best = max(found.bare, key=lambda cell: (len(found.bare[cell]), found.ceiling(cell)))
    print("| bare loop: threads × at once × batch | swaps/s | CPU ms |\n|---|---|---|")
    for cell, loops in found.bare.items():
        cpu = statistics.median(each.cpu for each in loops) * 1e3
        print(f"| {cell} | {found.ceiling(cell):.1f} | {cpu:.0f} |")
    print(
        "\n| closed loop | clients | swaps/s | p50, p95, p99 ms | CPU ms | not served |\n"
        "|---|---|---|---|---|---|"
    )
    for name, by_clients in found.closed.items():
        for clients, streams in by_clients.items():
            rate = statistics.median(stream.rate for stream in streams)
            failed = sum(stream.refused + stream.lost for stream in streams)
            cpu = statistics.median(stream.cpu for stream in streams) * 1e3
            print(
                f"| {name} | {clients} | {rate:.1f} | {times(found.of(name, clients))} |"
                f" {cpu:.0f} | {failed} |"
            )
    print(
        f"\nDeadline {found.deadline:.1f} s, {LONE_SWAPS} lone swaps.\n\n"
        "| at random, of its own capacity | load | sent/s | swaps/s in time | p50, p95, p99 ms"
        " | refused, lost, late of sent |\n|---|---|---|---|---|---|"
    )
    for name, by_share in found.open.items():
        for share, stream in by_share.items():
            late = sum(took > found.deadline for took in stream.times)
            print(
                f"| {name} | {share:.0%} | {share * found.rates[name]:.1f} |"
                f" {stream.goodput(found.deadline):.1f} | {times(stream.times)} |"
                f" {stream.refused}, {stream.lost}, {late} of {len(stream.answers)} |"
            )
    print(
        "\n| interactive | p50, p95, p99 ms |\n|---|---|\n"
        f"| alone | {times(found.lanes[False])} |\n| beside {SATURATED} bulk clients,"
        f" {statistics.median(found.bulk):.1f} swaps/s | {times(found.lanes[True])} |"
    )
    cpus = psutil.cpu_count()
    print(
        f"\nThe load generator took {statistics.median(found.shares) / cpus:.1%} of {cpus} CPUs,"
        f" at most {max(found.shares) / cpus:.1%}.\n"
    )
    results = list(goals(found, best))
    for met, text in results:
        print(f"- {'met' if met else 'MISSED'}: {text}")
    return all(met for met, _ in results)


def goals(found: Found, best: Cell) -> Iterable[tuple[bool, str]]:
    """Each goal: whether it is met, and what was found."""
    ours = max(
        (
            [stream.rate for stream in found.closed["Ember"][clients]]
            for clients in found.closed["Ember"]
            if clients >= SATURATED
        ),
        key=statistics.median,
    )
    bare = found.bare[best][1:] or found.bare[best]
    ratio = statistics.median(mine / most.rate for mine, most in zip(ours, bare, strict=False))
    yield ratio >= 0.95, f"saturated ÷ best bare loop ({best}) {ratio:.2f} ≥ 0.95"
    p99 = {name: percentile(by[0.8].times, 99) for name, by in found.open.items()}
    peers = {name: value for name, value in p99.items() if name != "Ember"}
    lowest = min(peers, key=peers.__getitem__, default=None)
    if lowest:
        yield (
            p99["Ember"] < peers[lowest],
            f"p99 at 80 % {p99['Ember']:.0f} ms, the best peer ({lowest}) {peers[lowest]:.0f} ms",
        )
    good = {
        name: {share: stream.goodput(found.deadline) for share, stream in by.items()}
        for name, by in found.open.items()
    }
    kept = {name: by[1.5] / max(by.values()) for name, by in good.items()}
    others = ", ".join(f"{name} {value:.2f}" for name, value in kept.items() if name != "Ember")
    yield kept["Ember"] >= 0.9, f"goodput at 150 % ÷ peak {kept['Ember']:.2f} ≥ 0.9 ({others})"
    if off := found.closed.get("Ember, batching off"):
        ratio = statistics.median(
            statistics.median(mine.times) / statistics.median(single.times)
            for mine, single in zip(found.closed["Ember"][1], off[1], strict=True)
        )
        yield ratio <= 1.05, f"one client ÷ batching off {ratio:.2f} ≤ 1.05"
    if found.again.again:
        yield (
            found.again.let_in >= 0.9,
            f"of {len(found.again.again)} retries on time {found.again.let_in:.2f} let in ≥ 0.9",
        )
    idle, beside = (percentile(found.lanes[crowd], 99) for crowd in (False, True))
    batch = found.batch_s * 1e3
    yield (
        beside <= 2 * idle + batch,
        f"interactive p99 beside bulk {beside:.0f} ms ≤ 2 × {idle:.0f} + {batch:.0f} ms",
    )


def tell(text: str) -> None:
    """Say how far it is, on a terminal or in a log."""
    print(f"{time.strftime('%T')} {text}", file=sys.stderr, flush=True)


def times(seconds: list[float]) -> str:
    """Three percentiles in milliseconds."""
    return ", ".join(f"{percentile(seconds, rank):.0f}" for rank in (50, 95, 99))


def percentile(seconds: list[float], rank: int) -> float:
    """A percentile in milliseconds; infinite where nothing was served."""
    return float(np.percentile(seconds, rank)) * 1e3 if seconds else float("inf")


if __name__ == "__main__":
    sys.exit(main())
