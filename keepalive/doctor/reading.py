"""Where objects come from: files, folders, standard input, kustomizations, a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepalive.cluster.kubectl import ran
from keepalive.doctor.config import NAMES, NAMESPACE
from keepalive.failure import Exit, Failure, bring

if TYPE_CHECKING:
    from collections.abc import Iterable

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class UnreadableManifest(Failure):
    """Something cannot be read; the message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNAVAILABLE)


def documents(place: str, kubectl: str = "kubectl") -> list[dict[str, Any]]:
    """The objects of a place.

    Args:
        place: a YAML file, a folder of them, a folder with a kustomization, or "-".
        kubectl: renders kustomizations.

    Raises:
        UnreadableManifest: there is nothing, or it is no YAML of objects.
    """
    path = Path(place)
    if place == "-":
        return parsed(sys.stdin.read(), "standard input")
    if path.is_dir():
        if any((path / name).is_file() for name in KUSTOMIZATIONS):
            return parsed(_ran(kubectl, "kustomize", str(path)), place)
        files = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not files:
            raise UnreadableManifest(f"{place}: there is no .yaml file and no kustomization")
        return [one for file in files for one in documents(str(file), kubectl)]
    try:
        return parsed(path.read_text(encoding="utf-8"), place)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableManifest(f"{place}: {getattr(error, 'strerror', None) or error}") from None


def cluster(kubectl: str = "kubectl", context: str | None = None) -> list[dict[str, Any]]:
    """The ConfigMaps that a cluster's Knative goes by.

    Raises:
        UnreadableManifest: the cluster cannot be asked, or has no Knative.
    """
    where = ["--context", context] if context else []
    text = _ran(kubectl, *where, "get", "configmap", "-n", NAMESPACE, "-o", "json", *NAMES)
    return list(json.loads(text)["items"])


def live(
    namespaces: Iterable[str | None], kubectl: str = "kubectl", context: str | None = None
) -> list[dict[str, Any]]:
    """The Knative Services and Revisions of a cluster, with who has written which field.

    Args:
        namespaces: where to look; None for that of the context.
        kubectl: which kubectl to run.
        context: its context.

    Raises:
        UnreadableManifest: the cluster cannot be asked.
    """
    found: list[dict[str, Any]] = []
    what = "services.serving.knative.dev,revisions.serving.knative.dev"
    for namespace in dict.fromkeys(namespaces):
        where = ["--context", context] if context else []
        where += ["--namespace", namespace] if namespace else []
        text = _ran(kubectl, *where, "get", what, "-o", "json", "--show-managed-fields")
        found += json.loads(text)["items"]
    return found


def parsed(text: str, name: str) -> list[dict[str, Any]]:
    """The objects of a YAML text; those of a List are taken out of it.

    Raises:
        UnreadableManifest: it is no YAML, or there is something else than objects in it.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        raise UnreadableManifest(f"it needs PyYAML: {bring('k8s')}") from None
    try:
        found = [one for one in yaml.safe_load_all(text) if one is not None]
    except RecursionError:
        raise UnreadableManifest(f"{name}: is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # the latter for a day that does not exist
        raise UnreadableManifest(f"{name}: is no YAML: {' '.join(str(error).split())}") from None
    objects = [one for some in found for one in _listed(some)]
    if not all(isinstance(one, dict) for one in objects):
        raise UnreadableManifest(
            f"{name}: there is something else than an object of Kubernetes in it"
        )
    return objects


def _listed(found: Any) -> list[Any]:
    """The items of a List; else the one that it is."""
    if not isinstance(found, dict) or found.get("kind") != "List":
        return [found]
    items = found.get("items") or []
    return items if isinstance(items, list) else [items]


def _ran(kubectl: str, *words: str) -> str:
    try:
        return ran(kubectl, *words)
    except Failure as failure:
        raise UnreadableManifest(str(failure)) from None
