"""Full-size models of random weights, made once, and files that are not in memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from function.process.wiring.service import embedded
from function.runtime.backends.optimised import Optimised
from function.service import opening
from function.weights import batches, collection
from tests import neural
from tests.bench.photos import photo
from warmup.models import manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOLDER = Path("build/neural")
NAMES = {"det_10g": "scrfd", "w600k_r50": "arcface", "inswapper_128": "inswapper_128"}
_BLOCK = 4 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """What the benchmark runs.

    Attributes:
        pack: the folder with the published files.
        whole: a manifest of all three of them, the swapper for batches.
        found: a manifest with the embedded detector in place of theirs, so that faces are found.
        store: where optimised graphs are kept.
        photos: the files of source and target, of 2 megapixels.
    """

    pack: Path
    whole: Path
    found: Path
    store: Path
    photos: tuple[Path, Path]

    @property
    def published(self) -> list[Path]:
        """The three files as InsightFace loads them."""
        return [self.pack / f"{name}.onnx" for name in NAMES]

    @property
    def kept(self) -> list[Path]:
        """The files of the optimised graphs of `whole`."""
        entries = manifest.read(self.whole)
        folders = [Optimised.of(self.store, each.file.sha256).folder for each in entries]
        return [path for folder in folders for path in sorted(folder.iterdir())]


def make() -> Made:
    """The files, which stay in `build/neural` for the next time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pack = FOLDER / "pack"
    made = Made(
        pack=pack,
        whole=FOLDER / "whole.toml",
        found=FOLDER / "found.toml",
        store=FOLDER / "store",
        photos=(FOLDER / "hopper.jpg", FOLDER / "collins.jpg"),
    )
    for path in made.photos:
        path.write_bytes(photo(path.stem, 2))
    pack.mkdir(exist_ok=True)
    for name, family in NAMES.items():
        if not (path := pack / f"{name}.onnx").exists():
            neural.make(path, family, full=True)
    swapper = FOLDER / "inswapper_128.batch.onnx"
    if not swapper.exists():
        batches.make(pack / "inswapper_128.onnx", swapper)
    known, _ = collection.scan([pack, FOLDER])
    for path, skipped in ((made.whole, ""), (made.found, "detect")):
        kept = [each for each in known if each.role != skipped]
        choice = collection.choose(kept, (swapper.name,), embedded())
        collection.write(collection.entries(choice, FOLDER), path)
        _keep(path, made.store)
    return made


def _keep(path: Path, store: Path) -> None:
    """Have the optimised graphs of a manifest on the disk."""
    for model in manifest.read(path):
        entry = Optimised.of(store, model.file.sha256)
        if not entry.folder.exists():
            opening.open_engine(model, store=store)
            while not entry.folder.exists():
                time.sleep(0.1)
    os.sync()


def drop(paths: Iterable[Path]) -> None:
    """Have the kernel forget what it holds of some files.

    Raises:
        RuntimeError: it still holds some of one.
    """
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if share := resident(path):
            raise RuntimeError(f"{share:.0%} of {path} is still in memory")


def resident(path: Path) -> float:
    """Which share of a file's pages is in memory."""
    size = path.stat().st_size
    pages = -(-size // mmap.PAGESIZE)
    if not pages:
        return 0.0
    libc = ctypes.CDLL(None, use_errno=True)
    flags = (ctypes.c_ubyte * pages)()
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as data:
        address = ctypes.addressof(ctypes.c_char.from_buffer(data))
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), flags):
            raise OSError(ctypes.get_errno(), "mincore")
    return sum(flag & 1 for flag in flags) / pages


def read(paths: Sequence[Path]) -> float:
    """Milliseconds to read the bytes of some files once, each in a thread of its own."""

    def one(path: Path) -> None:
        block = bytearray(_BLOCK)
        with path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass

    began = time.perf_counter()
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(one, paths))
    return (time.perf_counter() - began) * 1e3
