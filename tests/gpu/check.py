"""Runs the parts of the check one after the other, each in a process of its own, within a budget.

Whatever a part does to itself, ends, hangs or breaks, the others go on and the report is written.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

LEAST = 0.25
"""A part is not begun with less than this of its share."""


class Missing(Exception):
    """Something that a part needs is not here."""


@dataclass(frozen=True)
class Part:
    """One part of the check.

    Attributes:
        run: a function of a module, of the world; gives what was found, as JSON knows it. Its name
            is that of the part, and its docstring says what it proves.
        share_s: how long it may take; what those before it have left over comes on top.
        on_standin: whether it is rehearsed on the stand-in for NVIDIA's driver.
    """

    run: Callable[..., dict]
    share_s: float
    on_standin: bool = False

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def proves(self) -> str:
        return " ".join(self.run.__doc__.split())


@dataclass
class Budget:
    """How long each part may take; all together no longer than the sum of their shares.

    Attributes:
        clock: seconds, never going back.
        times: how many times its share each has, for a machine that does other things as well.
        share_s: the sum of the shares so far.
    """

    clock: Callable[[], float] = time.monotonic
    times: float = 1.0
    share_s: float = 0.0

    def __post_init__(self):
        self._began = self.clock()

    def limit(self, share_s: float) -> float:
        """How long the next part may take, which has this share."""
        self.share_s += share_s * self.times
        return self.share_s - self.spent

    @property
    def spent(self) -> float:
        return self.clock() - self._began


def checked(
    parts: Sequence[Part], folder: Path, *, rehearsal: bool, budget: Budget
) -> Iterator[tuple[Part, dict]]:
    """Each part with its state and what it has found."""
    for part in parts:
        began, limit = budget.spent, budget.limit(part.share_s)
        if limit < LEAST * part.share_s:
            found = _skipped(f"the budget is gone: {limit:.0f} s left of {part.share_s:.0f}")
        else:
            found = _apart(part, folder, limit, rehearsal=rehearsal)
        yield part, found | {"seconds": round(budget.spent - began, 1), "share_s": part.share_s}


def _apart(part: Part, folder: Path, limit: float, *, rehearsal: bool) -> dict:
    """What a part finds in a process of its own."""
    environ = dict(os.environ)
    if rehearsal and part.on_standin:
        try:
            environ |= _standin()
        except Missing as missing:
            return _skipped(str(missing))
    answer, log = folder / f"{part.name}.json", folder / f"{part.name}.log"
    world = "rehearsal" if rehearsal else "gpu"
    words = (part.run.__module__, part.name, str(folder), world, str(answer))
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.check", *words],
            env=environ,
            cwd=Path(__file__).parents[2],
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return _failed(f"it was not done after {limit:.0f} s; {_last(log)}")
        finally:
            _end(process)
    if code == 0 and answer.exists():
        return json.loads(answer.read_text())
    how = signal.Signals(-code).name if code < 0 else f"code {code}"
    return _failed(f"its process ended with {how}; {_last(log)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and all that it has begun."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _standin() -> Mapping[str, str]:
    from _pytest.outcomes import Failed, Skipped

    from tests.gpu import standin

    try:
        return {"LD_LIBRARY_PATH": standin.folder().name}
    except (Failed, Skipped) as error:
        raise Missing(str(error)) from error


def _skipped(reason: str) -> dict:
    return {"state": "skipped", "reason": reason}


def _failed(reason: str) -> dict:
    return {"state": "failed", "reason": reason}


def _last(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f"it said last: {lines[-1][:300]}" if lines else "it said nothing"


def main(module: str, name: str, folder: str, world: str, answer: str) -> None:
    """Run one part in this process."""
    run = getattr(importlib.import_module(module), name)
    from tests.gpu.worlds import Real, Rehearsal

    made = (Rehearsal if world == "rehearsal" else Real)(Path(folder))
    try:
        found = {"state": "rehearsed" if world == "rehearsal" else "passed", **run(made)}
    except Missing as missing:
        found = _skipped(str(missing))
    except Exception as error:
        traceback.print_exc()
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        found = _failed(said if len(said) < 800 else f"{said[:300]} … {said[-500:]}")
    Path(answer).write_text(json.dumps(found))
    sys.stdout.flush()
    # A GPU that was lost may never let its libraries end; nothing of them is needed any more.
    os._exit(0)


if __name__ == "__main__":
    # Parts raise the `Missing` of the module that they import, not that of this second copy of it.
    importlib.import_module("tests.gpu.check").main(*sys.argv[1:])
