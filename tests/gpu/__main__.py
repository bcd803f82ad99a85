"""`make gpu-check`: everything that only a GPU can show, in less than five minutes, as a report.

What is not installed is skipped, with the reason. `--rehearse` goes through all of it on the CPU
and on the stand-in for NVIDIA's driver, to see that the check itself works: its numbers say nothing
about a GPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from function import __version__
from function.exits import Exit
from tests.gpu import parts, report
from tests.gpu.check import Budget, checked
from warmup.failures import WarmupError

ROOT = Path(__file__).parents[2]


def main(words=None, table=parts.PARTS) -> int:
    parser = argparse.ArgumentParser(prog="make gpu-check")
    parser.add_argument("--report", type=Path, default=ROOT / "build/gpu-check.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/gpu-report.md")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU")
    parser.add_argument("--only", action="append", choices=[part.name for part in table])
    parser.add_argument("--times", type=float, default=1.0, help="so often the budget")
    options = parser.parse_args(words)
    wanted = [part for part in table if not options.only or part.name in options.only]
    try:
        gpu = {} if options.rehearse else _gpu()
    except WarmupError as error:
        print(f"gpu-check: nothing was checked: {error}", file=sys.stderr)
        return Exit.UNAVAILABLE
    found = {
        "ember": __version__,
        "python": platform.python_version(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "rehearsal": options.rehearse,
        "gpu": gpu,
        "budget_s": sum(part.share_s for part in wanted) * options.times,
        "parts": {
            part.name: {"state": "skipped", "reason": "not asked for"}
            if part not in wanted
            else {"state": "failed", "reason": "the check ended before it"}
            for part in table
        },
    }
    budget = Budget(times=options.times)
    with TemporaryDirectory(prefix="ember-gpu-check-") as folder:
        rehearsal = options.rehearse
        for part, facts in checked(wanted, Path(folder), rehearsal=rehearsal, budget=budget):
            found["parts"][part.name] = facts
            found["seconds"] = round(budget.spent, 1)
            report.write(found, table, options.report, options.page)  # each time: ends may be hard
            print(f"{part.name:14} {json.dumps(facts)[:400]}", flush=True)
    failed = [name for name, facts in found["parts"].items() if facts["state"] == "failed"]
    print(f"gpu-check: {options.report}, {options.page}: {len(failed)} failed {failed or ''}")
    return 1 if failed else 0


def _gpu() -> dict:
    """What is known of the GPU without using it."""
    from function.runtime.gpu import device
    from warmup.plans import nvml

    device.check(0)
    gpu = nvml.first()
    memory = gpu.memory()
    return {**asdict(gpu), "bytes": memory and memory.total}


if __name__ == "__main__":
    sys.exit(main())
