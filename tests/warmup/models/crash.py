"""`python -m tests.warmup.models.crash FACTS`: prefetches that are killed, forked from one process.

A fork starts in no time, so that hundreds of them can be killed, and this process has no threads
that a fork would cut off.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import aiohttp  # noqa: F401  # once here, not once in each child

import warmup.models.fetch_job
import warmup.models.partial
import warmup.objects.http
from warmup.models import manifest
from warmup.models.prefetch import prefetch
from warmup.settings.settings import StoreSettings
from warmup.settings.variables import build

warmup.models.partial.PART = 64 * 1024
warmup.models.partial._SAVE_EVERY_S = 0.01  # these transfers do not last half a second


class Crash:
    """Children that fetch a manifest into a store."""

    def __init__(self, facts):
        self.models = manifest.read(Path(facts["manifest"]))
        self.settings = build(
            StoreSettings,
            store=Path(facts["store"]),
            fetch_stall_s=20,
            fetch_connections=facts["connections"],
        )
        self.contents = {model.file.sha256: model.file.size for model in self.models}

    def start(self, sabotage=lambda: None):
        """Fork a child; its process id."""
        pid = os.fork()
        if pid:
            return pid
        try:
            sabotage()
            prefetch(self.models, self.settings).close()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def check(self, *, complete=False):
        """Everything in the store that looks whole must be right."""
        names = set()
        for path in (self.settings.store / "sha256").glob("*"):
            content = path.read_bytes()
            assert hashlib.sha256(content).hexdigest() == path.name, path
            names.add(path.name)
        for marker in (self.settings.store / "verified").glob("*"):
            if len(marker.name) == 64:
                assert marker.name in names, marker
        if complete:
            assert names == set(self.contents), names
            assert not list((self.settings.store / "partial").glob("*.data"))

    def complete(self):
        """Whether all files are there."""
        names = {path.name for path in (self.settings.store / "sha256").glob("*")}
        return names == set(self.contents)

    def finish(self):
        """A child that nobody kills must bring everything."""
        _, status = os.waitpid(self.start(), 0)
        assert status == 0
        self.check(complete=True)

    def random(self, kills, longest_s, rng):
        """Kill children at random moments, two at a time, until all were killed or had finished.

        Returns:
            How many were killed, how many had finished, and how often all was there.
        """
        killed = finished = rounds = 0
        while killed < kills:
            if self.complete():
                self.clear()
                rounds += 1
            elif rng.random() < 0.05:
                self.finish()
            pair = [self.start(), self.start()]
            time.sleep(rng.uniform(0, longest_s))
            for pid in rng.sample(pair, 2):
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                died = os.WIFSIGNALED(status)
                assert died or status == 0
                killed += died
                finished += not died
                self.check()
                if rng.random() < 0.5:
                    time.sleep(rng.uniform(0, longest_s / 4))  # the other one goes on alone
        self.finish()
        return {"killed": killed, "finished": finished, "rounds": rounds + 1}

    def every(self):
        """Kill a child at every step that it does in the store; each time, the next one goes on.

        Returns:
            How many steps there are.
        """
        step = 0
        while True:
            step += 1
            _, status = os.waitpid(self.start(lambda at=step: self._die(at)), 0)
            self.check()
            if status == 0:
                self.check(complete=True)
                return {"steps": step - 1}
            assert os.WIFSIGNALED(status), status
            self.finish()
            self.clear()

    def _die(self, step):
        """Kill this process right before its step number `step` in the store."""
        left = [step]
        store = str(self.settings.store)
        changes = {"open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.truncate"}

        def hook(event, args):
            if (event in changes and str(args[0]).startswith(store)) or event == "fcntl.flock":
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    def clear(self):
        """Begin with nothing."""
        for folder in ("sha256", "verified", "partial"):
            for path in (self.settings.store / folder).glob("*"):
                path.unlink()


def main():
    facts = json.loads(sys.argv[1])
    crash = Crash(facts)
    if facts["mode"] == "every":
        print(json.dumps(crash.every()))
    else:
        rng = random.Random(facts["seed"])
        print(json.dumps(crash.random(facts["kills"], facts["longest_s"], rng)))


if __name__ == "__main__":
    main()
