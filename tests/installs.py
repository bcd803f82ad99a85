"""Environments with extras of Ember, linked from that of the tests; and commands that need each."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import venv
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "docs" / "gpu-report.md"
"""Written by `make gpu-check`: errors that it quotes are no advice."""
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted({*(ROOT / "docs").glob("*.md")} - {REPORT}),
)

FROM_WHEEL = re.compile(r'pip install "\$\{WHEEL\}\[([a-z0-9,-]+)\]"')
BY_MAKE = re.compile(r"make (?:install|gpu-check) EXTRAS=([a-z0-9,-]+)")
BROUGHT_BY_MAKE = {"cpu", "heic", "k8s"}

LIKE = {"onnxruntime-gpu": "onnxruntime"}
"""Built for other devices, but with the same modules."""
NOT_HERE = {
    "onnxruntime-gpu",
    "pycuda",
    "tensorrt",
    "tensorrt-lean-cu13-bindings",
    "tensorrt-lean-cu13-libs",
}
"""Distributions that the tests do not have: gigabytes, or compiled with CUDA's toolkit."""


def documented() -> dict[frozenset[str], str]:
    """The sets of extras that documents tell to install, with one such line of each."""
    found = {}
    for path in DOCUMENTS:
        text = path.read_text()
        for match in FROM_WHEEL.finditer(text):
            found[frozenset(match[1].split(","))] = match[0]
        for match in BY_MAKE.finditer(text):
            named = set(match[1].split(","))
            brought = BROUGHT_BY_MAKE - {"cpu"} if "gpu" in named else BROUGHT_BY_MAKE
            found.setdefault(frozenset(named | brought), match[0])
    return found


LINES = documented()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@dataclass(frozen=True)
class Try:
    """A command that needs an extra.

    Attributes:
        words: the command; `{folder}` is where `files` are.
        code: how it ends, with all that it needs.
        says: a part of what it says then.
        beside: what else it needs.
        settings: variables of the environment.
    """

    words: str
    code: int = 0
    says: str = ""
    beside: frozenset[str] = frozenset({"cpu"})
    settings: dict[str, str] = field(default_factory=dict)

    def run(self, ember: Path, folder: Path) -> tuple[int, str]:
        """Run it outside the checkout; one that serves is ended when it is ready."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        store = {"EMBER_STORE": str(folder / "store"), "EMBER_PORT": "0"}
        running = subprocess.Popen(
            [ember, *self.words.format(folder=folder).split()],
            cwd=folder,
            env={**kept, **store, **self.settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with running:
            said = ""
            for line in running.stdout:
                said += line
                if '"phase": "ready"' in line:
                    running.terminate()
        return running.returncode, said


NOWHERE = "http://127.0.0.1:9"
TOKENS = {
    "EMBER_AUTH": "jwt",
    "EMBER_JWT_ISSUER": NOWHERE,
    "EMBER_JWT_AUDIENCE": "ember",
    "EMBER_JWT_JWKS_URL": NOWHERE,
}
TRIES = {
    "cpu": Try("faces {folder}/photo.jpg", says="512 × 600 pixels", beside=frozenset()),
    "gpu": Try("faces {folder}/photo.jpg", says="512 × 600 pixels", beside=frozenset()),
    "rtx": Try("engines build --target 9.0", 78, "TensorRT-RTX compiles for"),
    "engines": Try(
        "engines build --target 8.9 --role landmarks",
        says="landmarks    fp16",
        beside=frozenset({"cpu", "rtx"}),
        settings={"EMBER_PLAN_PRECISION": "fp16"},
    ),
    "models": Try("models fp16 {folder}/face.onnx", says="face.fp16.onnx"),
    "auth": Try("serve", says="ready", settings=TOKENS),
    "c2pa": Try("c2pa test-ca {folder}/certificates", says="EMBER_C2PA_KEY="),
    "gcs": Try(
        "audit verify gs://bucket/audit/",
        69,
        "Connection refused",
        settings={"STORAGE_EMULATOR_HOST": NOWHERE},
    ),
    "heic": Try("faces {folder}/photo.heic", says="512 × 600 pixels"),
    "k8s": Try(
        "doctor --manifests-only {folder}/map.yaml", says="no Knative Service", beside=frozenset()
    ),
    "otel": Try("serve", says="ready", settings={"EMBER_TRACES": NOWHERE}),
    "plan": Try(
        "simulate steady:5 --days 0.01 --picture {folder}/plan.svg",
        says="replicas",
        beside=frozenset(),
    ),
    "redis": Try(
        "jobs ls", 69, "cannot be reached", settings={"EMBER_REDIS_URL": "redis://127.0.0.1:9"}
    ),
    "video": Try(
        "swap {folder}/photo.jpg {folder}/clip.mp4 -o {folder}/out.mp4", 65, "No face was found"
    ),
}


def runnable(extras: frozenset[str]) -> list[str]:
    """Of which extras the commands can be tried where these are installed."""
    there = extras | {"cpu"} if "gpu" in extras else extras
    return [each for each in sorted(extras & TRIES.keys()) if TRIES[each].beside <= there]


def chosen() -> dict[frozenset[str], str]:
    """For each documented line the extra of which the command is tried: together, all of them."""
    taken: dict[frozenset[str], str] = {}
    for extras in sorted(LINES, key=lambda extras: (len(runnable(extras)), sorted(extras))):
        often = [*taken.values()]
        taken[extras] = min(runnable(extras), key=lambda each: (often.count(each), each))
    return taken


class Linked:
    """The distributions of this environment, each in a folder of its own that others can name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = {canonicalize_name(each.name): each for each in distributions()}

    def closure(self, extras: frozenset[str]) -> tuple[set[str], set[str]]:
        """What Ember needs with these extras: what is here, and what is not."""
        optional = PROJECT["optional-dependencies"]
        return self.needed(
            [*PROJECT["dependencies"], *(x for each in extras for x in optional[each])]
        )

    def needed(self, lines: list[str]) -> tuple[set[str], set[str]]:
        """What these requirements need in all: what is here, and what is not."""
        here: set[str] = set()
        lacking: set[str] = set()
        todo = [*lines]
        seen = set()
        while todo:
            if (line := todo.pop()) in seen:
                continue
            seen.add(line)
            need = Requirement(line)
            name = canonicalize_name(need.name)
            if name not in self._found:
                lacking.add(name)
            if not (found := self._found.get(LIKE.get(name, name))):
                continue
            here.add(canonicalize_name(found.name))
            for further in map(Requirement, found.requires or ()):
                marker, further.marker = further.marker, None
                if marker is None or any(
                    marker.evaluate({"extra": extra}) for extra in need.extras or {""}
                ):
                    todo.append(str(further))
        return here, lacking

    def path(self, name: str) -> Path:
        """The folder of one of them."""
        folder = self._folder / name
        if not folder.exists():
            self._link(self._found[name], folder)
        return folder

    @staticmethod
    def _link(distribution: Distribution, folder: Path) -> None:
        for file in distribution.files or ():
            if ".." not in file.parts:
                place = folder / file
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(Path(distribution.locate_file(file)))

    def environment(self, folder: Path, extras: frozenset[str]) -> Path:
        """A fresh one with all that Ember needs with these extras; where its programs are."""
        return self.put(self.closure(extras)[0], folder)

    def put(self, names: set[str], folder: Path) -> Path:
        """A fresh environment with these distributions; where its programs are."""
        venv.create(folder, symlinks=True)
        paths = map(self.path, sorted(names))
        (packages(folder) / "linked.pth").write_text("\n".join(map(str, paths)))
        return folder / "bin"


def packages(environment: Path) -> Path:
    """Where an environment has its modules."""
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def put_in(environment: Path, unpacked: Path) -> None:
    """Do with a wheel that was unpacked what pip does, in less time."""
    (packages(environment) / "ember.pth").write_text(str(unpacked))
    command = environment / "bin/ember"
    command.write_text(f"#!{environment}/bin/python\nfrom function.command import main\nmain()\n")
    command.chmod(0o755)
