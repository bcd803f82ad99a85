"""`make attack`: every attack in turn, and a table of what came of it.

A line is good when no answer was a failure (5xx, but for a 503 with its code and `Retry-After`),
`/healthz` never took a second, and the memory stayed below the limit of the base Service.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from collections import Counter

from tests.attack.attacks import ATTACKS, Attack
from tests.attack.victim import Answer, Probe, Victim, limit, victim

HEALTH_S = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    names = [attack.__name__ for attack in ATTACKS]
    parser.add_argument("only", nargs="*", metavar="NAME", help=", ".join(names))
    chosen = parser.parse_args().only
    if unknown := set(chosen) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    print(f"load average {os.getloadavg()[0]:.1f}; memory limit {limit() / 2**20:.0f} MiB")
    print(f"{'attack':20} {'s':>5} {'/healthz':>9} {'MiB':>6}  answers")
    left = [attack for attack in ATTACKS if not chosen or attack.__name__ in chosen]
    bad = 0
    while left:
        with victim() as target:  # and another one, if that dies
            while left and target.server.process.poll() is None:
                bad += not tried(left.pop(0), target)
    print(f"{bad} of them did harm" if bad else "none of them did harm")
    return 1 if bad else 0


def tried(attack: Attack, target: Victim) -> bool:
    """Make one attack, and print its line; whether it did no harm."""
    target.forget()
    began = time.monotonic()
    answers: list[Answer] = []
    faults = []
    with Probe(target.server) as probe:
        try:
            answers = attack(target)
        except AssertionError as error:
            faults.append(str(error))
    took, peak = time.monotonic() - began, 0
    if target.server.process.poll() is None:
        peak = target.peak()
    else:
        faults.append(f"the process ended with {target.server.process.returncode}")
    faults += judged(answers, probe.slowest_s, probe.wrong, peak, target.limit)
    counts = ", ".join(f"{n} × {status}" for status, n in sorted(kinds(answers).items()))
    row = f"{attack.__name__:20} {took:5.1f} {probe.slowest_s:7.2f} s {peak / 2**20:6.0f}"
    print(f"{row}  {counts}", flush=True)
    if faults:
        print(f"  {inspect.getdoc(attack)}", *(f"BAD: {fault}" for fault in faults), sep="\n  ")
    return not faults


def judged(answers: list[Answer], slowest_s: float, wrong: int, peak: int, limit: int) -> list[str]:
    """What is wrong with the outcome of an attack; nothing, if it did no harm."""
    faults = []
    if failures := kinds([each for each in answers if not each.honest]):
        faults.append(f"failures: {dict(failures)}")
    if slowest_s >= HEALTH_S:
        faults.append(f"/healthz took {slowest_s:.1f} s")
    if wrong:
        faults.append(f"/healthz failed {wrong} times")
    if peak >= limit:
        faults.append(f"{peak / 2**20:.0f} MiB of memory, of {limit / 2**20:.0f}")
    return faults


def kinds(answers: list[Answer]) -> Counter[str]:
    """How many answers there are of each status and code; `none` for a closed connection."""
    return Counter(f"{each.status or 'none'} {each.code}".strip() for each in answers)


if __name__ == "__main__":
    sys.exit(main())
