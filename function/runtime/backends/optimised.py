"""Optimised graphs, kept so that later starts need a few milliseconds to load a model of any size.

ONNX Runtime optimises a graph whenever it makes a session, which is most of the time that this
takes, and copies the weights into memory. Here the result is written once, with the weights in a
file of their own. That graph is loaded as it is, and the runtime maps the weights: no page is read
before an inference needs it, and all processes of a node share them.

An entry is a folder that appears whole or not at all. It is right for one model, one version of the
runtime and one kind of CPU, which its name is made of. Whatever is wrong with an entry or with the
disk, the model is loaded from its own file instead.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.runtime.backends.onnx import VERSION, OnnxEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.runtime.engine import Ports

log = logging.getLogger("ember.optimised")

_FORMAT = 2
_GRAPH, _WEIGHTS, _PROOF = "graph.onnx", "weights.bin", "proof.json"
_ABANDONED_S = 3600
_UNUSED_S = 30 * 86400


@dataclass(frozen=True, slots=True)
class Optimised:
    """The entry of one model in a store, whether it is there or not.

    Attributes:
        folder: where it is.
    """

    folder: Path

    @classmethod
    def of(cls, store: Path, sha256: str) -> Optimised:
        """The entry of the model with this digest, for this runtime on this CPU."""
        facts = f"{_FORMAT} {VERSION} {platform.machine()} {cpu_features()}"
        kind = hashlib.sha256(facts.encode()).hexdigest()[:16]
        return cls(store / "optimised" / f"{sha256}-{kind}")

    def load(self, threads: int, ports: Ports | None = None) -> OnnxEngine | None:
        """An engine on the kept graph; None when there is none, or it is of no use."""
        if not self._sound():
            return None
        try:
            engine = OnnxEngine(self.folder / _GRAPH, threads, optimise=False, ports=ports)
        except Exception as error:
            log.warning("an optimised graph is of no use", extra=self._facts(error))
            self._drop()
            return None
        with suppress(OSError):
            os.utime(self.folder)
        return engine

    def make(self, path: Path, threads: int, ports: Ports | None = None) -> OnnxEngine:
        """An engine on the model's own file; its optimised graph is kept if that is possible.

        The disk is waited for by a thread of its own.

        Args:
            path: the model, which was verified.
            threads: threads of one inference.
            ports: see `OnnxEngine`.
        """
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self._clear()
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self.folder.parent))
        except OSError as error:  # no store, or one that is read-only
            log.info("no optimised graph can be kept", extra=self._facts(error))
            return OnnxEngine(path, threads, ports=ports)
        try:
            engine = OnnxEngine(path, threads, keep=(draft / _GRAPH, _WEIGHTS), ports=ports)
        except Exception as error:  # a full disk, or a model that cannot be loaded at all
            shutil.rmtree(draft, ignore_errors=True)
            log.warning("no optimised graph can be kept", extra=self._facts(error))
            return OnnxEngine(path, threads, ports=ports)
        threading.Thread(target=self._commit, args=(draft,), name="keep").start()
        return engine

    def _sound(self) -> bool:
        """Whether the entry is there and is what was written; if it is not, it goes."""
        if not self.folder.is_dir():
            return False
        try:
            return self._matches(json.loads((self.folder / _PROOF).read_bytes())) or self._drop()
        except (OSError, ValueError, KeyError, TypeError):
            return self._drop()

    def _matches(self, proof: dict[str, Any]) -> bool:
        """Whether both files are untouched, or have their digest nevertheless."""
        stamps = {}
        for name in (_GRAPH, _WEIGHTS):
            found = (self.folder / name).stat()
            if _stamp(found) != proof[name]["stamp"]:
                if _digest(self.folder / name) != proof[name]["sha256"]:
                    return False
                stamps[name] = proof[name] | {"stamp": _stamp(found)}
        if stamps:
            with suppress(OSError):  # a store that is read-only is hashed each time
                _write(self.folder / _PROOF, proof | stamps)
        return True

    def _commit(self, draft: Path) -> None:
        """Give a draft its name when all of it is on the disk."""
        try:
            proof = {}
            for name in (_GRAPH, _WEIGHTS):
                (draft / name).touch()  # a graph without large weights has no second file
                _sync(draft / name)
                found = (draft / name).stat()
                digest = _digest(draft / name)
                proof[name] = {"stamp": _stamp(found), "sha256": digest}
            _write(draft / _PROOF, proof)
            _sync(draft)
            draft.rename(self.folder)
            _sync(self.folder.parent)
        except OSError as error:
            if not self.folder.exists():  # else another process was faster
                log.warning("no optimised graph can be kept", extra=self._facts(error))
            shutil.rmtree(draft, ignore_errors=True)

    def _drop(self) -> bool:
        """Remove an entry, of which nothing can be seen at once; gives False."""
        draft = self.folder.with_name(f".draft-{self.folder.name}-{time.monotonic_ns()}")
        with suppress(OSError):
            self.folder.rename(draft)
            shutil.rmtree(draft, ignore_errors=True)
        return False

    def _clear(self) -> None:
        """Remove what processes that were killed have left, and what nobody used for a month."""
        now = time.time()
        for each in _folders(self.folder.parent):
            allowed = _ABANDONED_S if each.name.startswith(".draft-") else _UNUSED_S
            if now - each.stat().st_mtime > allowed:
                shutil.rmtree(each, ignore_errors=True)

    def _facts(self, error: Exception) -> dict[str, str]:
        return {"folder": str(self.folder), "reason": str(error)}


def _folders(parent: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from [each for each in parent.iterdir() if each.is_dir()]


def cpu_features() -> str:
    """What the CPU can do, as the kernel lists it; optimised graphs are laid out for that."""
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            name, _, features = line.partition(":")
            if name.strip() in {"flags", "Features"}:
                return " ".join(sorted(features.split()))
    return platform.processor()


def _stamp(found: os.stat_result) -> list[int]:
    """What changes when a file is written to, cut or copied."""
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, facts: dict[str, Any]) -> None:
    """Write so that a reader sees all of the old or all of the new."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(facts))
    _sync(draft)
    draft.replace(path)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
