"""`make bench-prefetch`: what it costs to have the models in the store, proven.

Everything is a process of its own, as an init container is, started in turns with what it is
compared to, so that the machine's drift hits both. Before each turn the disk's queue is emptied.

- From a local folder: against `cp` plus `sha256sum` of the copy, with and without `sync`. Ember's
  files are on the disk when it says so; those of `cp` are only with `sync`.
- From fake-gcs-server: against one stream of google-cloud-storage plus the digest of the file.
- Again, when everything is there; and twice at once, into one store.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.warmup.objects.gcs import fake_gcs
from tests.warmup.objects.hostile import hostile
from warmup.models import manifest
from warmup.models.prefetch import prefetch
from warmup.settings.settings import StoreSettings
from warmup.settings.variables import build

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"detect": 17_000_000, "identity": 174_000_000, "swap": 554_000_000}
TURNS = 5
HITS = 21
SINGLE_STREAM = """
import hashlib, sys
from google.cloud import storage
bucket = storage.Client().bucket("models")
for name in sys.argv[2:]:
    path = f"{sys.argv[1]}/{name}"
    bucket.blob(name).download_to_filename(path)
    with open(path, "rb") as file:
        hashlib.file_digest(file, "sha256").hexdigest()
"""


def main() -> None:
    """Measure and print."""
    with TemporaryDirectory(dir=os.environ.get("EMBER_TEST_BENCH_DIR")) as folder:
        bench = Bench(Path(folder))
        bench.local()
        bench.cloud()
        bench.hit()
        bench.two_at_once()


class Bench:
    """Three files of random bytes, and places for copies of them."""

    def __init__(self, folder: Path) -> None:
        self.source, self.copy, self.store = (folder / name for name in ("from", "copy", "store"))
        self.source.mkdir()
        self.digests = {}
        for name, size in SIZES.items():
            data = os.urandom(size)
            (self.source / name).write_bytes(data)
            self.digests[name] = hashlib.sha256(data).hexdigest()
        self.manifest = folder / "models.toml"
        self.total = sum(SIZES.values())

    def local(self) -> None:
        """From a folder."""
        names = " ".join(SIZES)
        copy = f"cp {{}} {self.copy} && cd {self.copy} && sha256sum {names}"
        copy = copy.format(" ".join(str(self.source / name) for name in SIZES))
        shell: Callable[[str], Callable[[], object]] = lambda line: lambda: run("sh", "-c", line)  # noqa: E731
        self.write(lambda name: (self.source / name).as_uri())
        self.compare(
            "a local folder",
            {
                "cp && sha256sum": shell(copy),
                "cp && sha256sum && sync": shell(f"{copy} && sync {names}"),
                "ember prefetch": self.prefetch,
            },
        )

    def cloud(self) -> None:
        """From a bucket."""
        with fake_gcs() as bucket:
            for name in SIZES:
                bucket.blob(name).upload_from_filename(str(self.source / name))
            self.write(lambda name: f"gs://models/{name}")
            single = (sys.executable, "-c", SINGLE_STREAM, str(self.copy), *SIZES)
            self.compare(
                "fake-gcs-server (on the same processors)",
                {"one stream, then sha256": lambda: run(*single), "ember prefetch": self.prefetch},
            )

    def hit(self) -> None:
        """When everything is there: the store of the turn before."""
        models, settings = manifest.read(self.manifest), build(StoreSettings, store=self.store)
        inside, whole, bare = [], [], []
        for _ in range(HITS):
            inside.append(timed(lambda: prefetch(models, settings).close()))
            whole.append(timed(self.prefetch))
            bare.append(timed(lambda: run(sys.executable, "-c", "import click, tomllib")))
        print(f"\nEverything is there, medians of {HITS}\n\n| what | ms |\n|---|---|")
        print(f"| the check itself (goal ≤ 100) | {statistics.median(inside) * 1e3:.1f} |")
        print(f"| the whole process | {statistics.median(whole) * 1e3:.0f} |")
        print(f"| – of which Python and click | {statistics.median(bare) * 1e3:.0f} |")

    def two_at_once(self) -> None:
        """Two processes, one store: what the server has sent."""
        with hostile() as site:
            uris = {name: site.put((self.source / name).read_bytes()) for name in SIZES}
            self.write(uris.__getitem__)
            self.clean()
            pair = [self.start(), self.start()]
            codes = [process.wait() for process in pair]
            probes = len(SIZES)
            print(
                f"\nTwo at once: exit codes {codes}, {site.sent / self.total:.3f} × the bytes sent"
            )
            assert site.sent <= self.total + 2 * probes

    def compare(self, source: str, ways: dict[str, Callable[[], object]]) -> None:
        """Run the ways in turns and print their throughput."""
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(TURNS):
            for name, way in ways.items():
                self.clean()
                times[name].append(timed(way))
        print(f"\nFrom {source}, {self.total / 1e6:.0f} MB in {len(SIZES)} files, {TURNS} turns\n")
        print("| what | MB/s, median | ember ÷ it, median of turns |\n|---|---|---|")
        for name, took in times.items():
            rate = self.total / 1e6 / statistics.median(took)
            pairs = zip(took, times["ember prefetch"], strict=True)
            ratio = statistics.median(theirs / ours for theirs, ours in pairs)
            print(f"| {name} | {rate:.0f} | {ratio:.2f} |")

    def clean(self) -> None:
        """Remove the copies."""
        for folder in (self.copy, self.store):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        os.sync()

    def write(self, uri: Callable[[str], str]) -> None:
        """Write the manifest with these URIs."""
        self.manifest.write_text(
            "".join(
                f'[[model]]\nrole = "{name}"\nfamily = "random"\nuri = "{uri(name)}"\n'
                f'size = {size}\nsha256 = "{self.digests[name]}"\nlicence = "CC0-1.0"\n'
                for name, size in SIZES.items()
            )
        )

    def start(self) -> subprocess.Popen[bytes]:
        """Start `ember prefetch`."""
        environ = {"EMBER_MANIFEST": str(self.manifest), "EMBER_STORE": str(self.store)}
        return subprocess.Popen(
            [sys.executable, "-m", "warmup", "prefetch"],
            env=os.environ | environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def prefetch(self) -> None:
        """Run `ember prefetch`."""
        process = self.start()
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()


def run(*command: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
