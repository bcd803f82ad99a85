"""Manifests as kustomize renders them, and what tests look up in them."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from keepalive.doctor.config import KnativeConfig, read

ROOT = Path(__file__).parents[2]
KNATIVE = ROOT / "knative"
SERVING = "serving.knative.dev/v1"

_QUANTITY = re.compile(r"([0-9.]+)([a-zA-Z]*)")
_FACTORS = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True)
class Manifests:
    """What one kustomization renders to.

    Attributes:
        documents: the objects.
        platform: the ConfigMaps of Knative that `knative/platform` changes for it.
    """

    documents: list[dict[str, Any]]
    platform: list[dict[str, Any]] = field(default_factory=list)

    @property
    def config(self) -> KnativeConfig:
        """What its cluster allows."""
        return read(self.platform)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [document for document in self.documents if document["kind"] == kind]

    @property
    def services(self) -> list[dict[str, Any]]:
        """Those of Knative."""
        return [one for one in self.of("Service") if one["apiVersion"] == SERVING]

    @property
    def service(self) -> dict[str, Any]:
        (service,) = self.services
        return service

    @property
    def revision(self) -> dict[str, Any]:
        """The specification of the revisions of the one service."""
        return self.service["spec"]["template"]["spec"]

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the revisions of the one service."""
        return self.service["spec"]["template"]["metadata"]["annotations"]

    @property
    def main(self) -> dict[str, Any]:
        (container,) = self.revision["containers"]
        return container

    @property
    def pods(self) -> list[tuple[str, dict[str, Any]]]:
        """A name and the specification of every pod."""
        found = []
        for document in self.documents:
            spec = document.get("spec", {})
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            if "spec" in spec.get("template", {}):
                name = f"{document['kind']}/{document['metadata']['name']}"
                found.append((name, spec["template"]["spec"]))
        return found

    @property
    def containers(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """A name, the pod and the container, of every container of every pod."""
        return [
            (f"{name}/{container['name']}", pod, container)
            for name, pod in self.pods
            for container in pod.get("initContainers", []) + pod["containers"]
        ]

    def environment(self, container: dict[str, Any]) -> dict[str, str]:
        """The variables of a container, those of ConfigMaps included."""
        maps = {one["metadata"]["name"]: one["data"] for one in self.of("ConfigMap")}
        found: dict[str, str] = {}
        for source in container.get("envFrom", []):
            found |= maps[source["configMapRef"]["name"]]
        for one in container.get("env", []):
            value = one.get("value", f"secret-{one['name']}")
            found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda m: found.get(m[1], m[0]), value)
        return found

    def changed(self, change) -> Manifests:
        """A copy that `change` has worked on."""
        other = copy.deepcopy(self)
        change(other)
        return other


def kubectl() -> str:
    """The one that the tests' own packages bring, else the machine's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = shutil.which("kubectl", path=path)
    assert found, "there is no kubectl: make .venv/.dev brings it"
    return found


def render(folder: Path) -> list[dict[str, Any]]:
    """The objects of a kustomization."""
    done = subprocess.run(
        [kubectl(), "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@cache
def rendered(folder: str) -> Manifests:
    """Those of a folder of knative/; only copies of it may be changed."""
    overlay = Path(folder).name if folder.startswith("overlays/") else "dev"
    return Manifests(render(KNATIVE / folder), render(KNATIVE / "platform" / overlay))


def quantity(text: str | int) -> float:
    """Kubernetes' way to write numbers: 250m, 2, 1Gi."""
    number, unit = _QUANTITY.fullmatch(str(text)).groups()
    return float(number) * _FACTORS[unit]
