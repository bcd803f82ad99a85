"""`make bench-cold`: Ember, the floor and the peers, from process start to the first swap.

All take turns, so that the machine's drift hits all of them; the table has medians. A start is
measured twice: once asked for swaps from the beginning, once left alone until it says that it is
ready, for what its first request costs then (the peers once).
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from function.process.wiring.service import embedded
from tests.bench.cold import ballast, contenders, measure

HEAD = (
    "server",
    "health, s",
    "first swap, s",
    "÷ floor",
    "÷ Ember",
    "first ÷ steady",
    "peak memory, MB",
)


def main() -> int:
    """Measure and print both tables; 1 when a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=0, help="starts of each")
    options.add_argument("--quick", action="store_true", help="one round")
    options.add_argument("--only", default="", help="names of the servers, separated by commas")
    options.add_argument("--sets", default="embedded,full-size")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end what was started
    sets = {"embedded": (embedded, 7), "full-size": (ballast.manifest, 3)}
    names = {name for name in chosen.only.split(",") if name}
    who = [each for each in contenders.everyone() if not names or each.name in names | {"Ember"}]
    goals = []
    for name in chosen.sets.split(","):
        manifest, rounds = sets[name]
        goals.append(
            compared(name, manifest(), who, 1 if chosen.quick else chosen.rounds or rounds)
        )
    return 0 if all(goals) else 1


def compared(name: str, manifest: Path, who: list[contenders.Contender], rounds: int) -> bool:
    """Measure one set of models and print its table; whether every goal is met."""
    Path("build/bench-cold").mkdir(parents=True, exist_ok=True)
    environ = {k: v for k, v in os.environ.items() if k not in _UNFAIR} | {
        "EMBER_MANIFEST": str(manifest),
        "EMBER_STORE": str(Path("build/bench-cold/store").absolute()),
        "EMBER_LOG_LEVEL": "warning",
        "EMBER_DRAIN_GRACE_S": "0",
        "PYTHONPATH": str(Path.cwd()),
        "BENTOML_HOME": str(Path("build/bench-cold/bentoml").absolute()),
        "BENTOML_DO_NOT_TRACK": "True",
    }
    bare = [sys.executable, "-m", "tests.bench.cold.floor"]
    imports = [sys.executable, "-c", "import aiohttp; print('swapped')"]
    floors, baselines = [], []
    starts: dict[str, list[measure.Start]] = defaultdict(list)
    services: dict[str, list[measure.Service]] = defaultdict(list)
    measure.floor(bare, environ)  # fills the page cache and the store
    began = time.monotonic()
    for turn in range(rounds):
        floors.append(measure.floor(bare, environ))
        baselines.append(measure.floor(imports, environ))
        for each in who:
            starts[each.label].append(measure.start(each, environ))
            if turn == 0 or each.name == "Ember":  # the next requests take most of the time
                services[each.label].append(measure.service(each, environ))
    floor = statistics.median(floors)
    baseline = statistics.median(baselines)
    ember = statistics.median(start.swap for start in starts["Ember"])
    print(f"\n### {name} set, medians of {rounds} interleaved starts\n")
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    print(f"| floor: a bare script | | {floor:.2f} | 1.00 | {floor / ember:.2f} | | |")
    swaps, ratios = {}, {}
    for label, found in starts.items():
        health = statistics.median(start.health for start in found)
        swap = swaps[label] = statistics.median(start.swap for start in found)
        ratio = ratios[label] = statistics.median(each.first for each in services[label])
        memory = statistics.median(each.megabytes for each in services[label])
        print(
            f"| {label} | {health:.2f} | {swap:.2f} | {swap / floor:.2f} | {swap / ember:.2f} |"
            f" {ratio:.2f} | {memory:.0f} |"
        )
    health = statistics.median(start.health for start in starts["Ember"])
    documented = [s for label, s in swaps.items() if label != "Ember" and "tuned" not in label]
    tuned = [s for label, s in swaps.items() if "tuned" in label]
    times = 3 if name == "full-size" else 1
    goals = {
        f"first swap ÷ floor {ember / floor:.2f} ≤ 1.15": ember <= 1.15 * floor,
        f"first ÷ steady {ratios['Ember']:.2f} ≤ 1.2": ratios["Ember"] <= 1.2,
        f"health ÷ `import aiohttp` {health / baseline:.2f} ≤ 1.5": health <= 1.5 * baseline,
        f"≥ {times} × faster than every peer as documented": all(
            swap >= times * ember for swap in documented
        ),
        "no slower than any tuned peer": all(swap >= ember for swap in tuned),
    }
    print()
    for goal, met in goals.items():
        print(f"- {'met' if met else 'MISSED'}: {goal}")
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)
    return all(goals.values())


_UNFAIR = {"PYTHONDONTWRITEBYTECODE"}  # without compiled files every import costs twice as much


if __name__ == "__main__":
    sys.exit(main())
