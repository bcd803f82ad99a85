"""Swaps made by the code of one commit, or of one folder, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tests.bench.quality.pairs import Pair

ROOT = Path(__file__).parents[3]
_CHILD = Path(__file__).with_name("swapping.py")
_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Swapped:
    """What one tree made of one pair.

    Attributes:
        pixels: uint8 [H, W, 3] RGB.
        warnings: codes.
    """

    pixels: NDArray[np.uint8]
    warnings: tuple[str, ...]


def export(ref: str, folder: Path) -> Path:
    """The folder with the code of a commit; made unless it is there.

    Args:
        ref: a commit, or a folder that has the code in it.
        folder: where exports are kept.
    """
    if Path(ref).is_dir():
        return Path(ref).resolve()
    git = ["git", "-C", str(ROOT)]
    name = [*git, "rev-parse", "--verify", f"{ref}^{{commit}}"]
    commit = subprocess.run(name, check=True, capture_output=True, text=True).stdout.strip()
    place = folder / commit
    if not place.exists():
        part = folder / f".{commit}.part"
        part.mkdir(parents=True, exist_ok=True)
        archive = [*git, "archive", commit, "function", "warmup", "pyproject.toml"]
        packed = subprocess.run(archive, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(part)], input=packed, check=True)
        part.rename(place)
    return place


def workplace(tree: Path, other: Path) -> Path:
    """The folder for what the code of `tree` makes: its own for a commit, else `other`."""
    place = tree / other.name if _COMMIT.fullmatch(tree.name) else other
    place.mkdir(parents=True, exist_ok=True)
    return place


def run(
    tree: Path, work: Path, tasks: dict[str, list[dict[str, str]]]
) -> dict[str, dict[str, Any]]:
    """Run tasks with the code of `tree`; what `swapping.py` says of each by its name.

    What a commit has made is not made again from the same files.
    """
    told, report, kept = (work / f"{name}.json" for name in ("tasks", "report", "kept"))
    known: dict[str, dict[str, Any]] = {}
    if kept.exists() and _COMMIT.fullmatch(tree.name):
        known = json.loads(kept.read_text())
    script = sha256(_CHILD.read_bytes()).hexdigest()
    seals = {}
    for task in (task for some in tasks.values() for task in some):
        photos = sorted(role for role in task if role.startswith(("source", "target")))
        every = (Path(task[role]).read_bytes() for role in photos)
        seals[task["name"]] = sha256(script.encode() + b"".join(every)).hexdigest()
    fresh = {
        kind: [
            task for task in some if known.get(task["name"], {}).get("seal") != seals[task["name"]]
        ]
        for kind, some in tasks.items()
    }
    if any(fresh.values()):
        told.write_text(json.dumps({"tree": str(tree), **fresh}))
        environ = {name: value for name, value in os.environ.items() if name[:6] != "EMBER_"}
        environ["PYTHONPATH"] = str(tree)
        command = [sys.executable, str(_CHILD), str(told)]
        subprocess.run(command, check=True, env=environ, cwd=work)
        for name, found in json.loads(report.read_text()).items():
            known[name] = {**found, "seal": seals[name]}
        kept.write_text(json.dumps(known))
    return {name: known[name] for name in seals if name in known}


def swap_all(tree: Path, work: Path, pairs: Iterable[Pair]) -> dict[str, Swapped]:
    """Every pair swapped by the code of `tree`, by its name.

    Args:
        tree: has the packages `function` and `warmup` in it.
        work: a folder for what the process is told and what it writes.
        pairs: what to swap.
    """
    tasks = []
    for pair in pairs:
        files = {}
        more = {f"source{k}": photo for k, photo in enumerate(pair.more, 1)}
        for role, made in {"source": pair.source, "target": pair.target, **more}.items():
            files[role] = str(work / f"{pair.name}.{role}.png")
            cv2.imwrite(files[role], made()[..., ::-1])
        tasks.append({"name": pair.name, "out": str(work / f"{pair.name}.png"), **files})
    return {
        name: Swapped(read(work / f"{name}.png"), tuple(told["warnings"]))
        for name, told in run(tree, work, {"photos": tasks}).items()
    }


def read(path: Path) -> NDArray[np.uint8]:
    """A picture as uint8 [H, W, 3] RGB."""
    return np.ascontiguousarray(cv2.imread(str(path), cv2.IMREAD_COLOR)[..., ::-1])
