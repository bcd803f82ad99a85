"""Whether the names in manifests are those of the code: settings, commands, paths, ports, images.

Each check yields what is not, in words.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING
from unittest.mock import patch

import click

from function.command import COMMANDS
from function.settings import load
from keepalive.cli import commands as keepalive
from tests.knative.manifests import ROOT
from tests.openapi.document import document
from warmup.settings.settings import WarmupSettings
from warmup.settings.variables import SettingsError, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.knative.manifests import Manifests

WARMUP = {variable.name for variable in variables(WarmupSettings)}
_WARMUPS_OWN = {"prefetch", "models", "engines"}
"""Commands that read the settings of the package warmup only."""
_TARGET = re.compile(r"^FROM \S+ AS (\S+)$", re.MULTILINE)


def settings(manifests: Manifests) -> Iterator[str]:
    """Settings that do not exist, or cannot have the value."""
    for name, _, container in manifests.containers:
        environment = manifests.environment(container)
        ours = {k: v for k, v in environment.items() if k.startswith("EMBER_")}
        reads = WARMUP if container.get("args", [""])[0] in _WARMUPS_OWN else set(ours)
        for key, value in ours.items():
            if value.startswith("/etc/ember/"):  # a file that only a pod has
                folder = value.rpartition("/")[0]
                mounts = {one["mountPath"] for one in container.get("volumeMounts", [])}
                if key in reads and folder not in mounts:
                    yield f"{name}: {key}: nothing is mounted at {folder}"
                ours[key] = __file__
        try:
            load(ours)
        except SettingsError as error:
            for problem in error.problems:
                yield f"{name}: {problem}"


def commands(manifests: Manifests) -> Iterator[str]:
    """Commands, arguments and options that the image's program does not have."""
    for name, _, container in manifests.containers:
        if not is_ours(container["image"]):
            continue
        if "command" in container:
            yield f"{name}: command replaces the image's program; use args"
            continue
        word, *rest = container.get("args", ["--help"])
        known = keepalive.commands if is_keepalive(container["image"]) else ember()
        if word not in known:
            yield f"{name}: there is no command {word}"
            continue
        try:
            with patch.dict(os.environ, manifests.environment(container), clear=True):
                known[word].make_context(word, rest)
        except click.UsageError as error:
            yield f"{name}: {word}: {error.format_message()}"


def probe_paths(manifests: Manifests) -> Iterator[str]:
    """Probes that ask where nothing answers."""
    for name, _, container in manifests.containers:
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            path = container.get(probe, {}).get("httpGet", {}).get("path")
            if path is not None and path not in gets():
                yield f"{name}: {probe}: nothing answers GET {path}"


def ports(manifests: Manifests) -> Iterator[str]:
    """A port that the process does not listen on, with what Knative tells it."""
    (port,) = (one["containerPort"] for one in manifests.main["ports"])
    environment = {**manifests.environment(manifests.main), "PORT": str(port)}
    address = load({k: v for k, v in environment.items() if k in {"EMBER_PORT", "PORT"}}).address
    if address.port != port:
        yield f"it listens on {address.port}, not on {port}"


def images(manifests: Manifests) -> Iterator[str]:
    """Tags of images built here that are no target of the Containerfile."""
    targets = set(_TARGET.findall((ROOT / "image" / "Containerfile").read_text()))
    for name, _, container in manifests.containers:
        if not is_ours(container["image"]) and not re.search("[:@]", container["image"]):
            yield f"{name}: {container['image']} has no tag"
        image, colon, tag = container["image"].rpartition(":")
        if not colon:
            yield f"{name}: no overlay says which image {container['image']} is"
        elif image.startswith("dev.local/") and tag not in targets:
            yield f"{name}: {tag} is no target of image/Containerfile"


def is_ours(image: str) -> bool:
    """Whether it is built here, and not somebody else's that a component uses."""
    return re.search(r"(^|/)ember(-keepalive)?(:|@|$)", image) is not None


def is_keepalive(image: str) -> bool:
    """Whether it is the image of `python -m keepalive`."""
    return "keepalive" in image


@cache
def ember() -> dict[str, click.Command]:
    """The subcommands of `ember`."""
    found = {}
    for name, (place, _) in COMMANDS.items():
        module, _, attribute = place.partition(":")
        found[name] = getattr(import_module(module), attribute)
    return found


@cache
def gets() -> set[str]:
    """The paths that answer GET; tests/function/http holds the document equal to the routes."""
    return {path for path, methods in document()["paths"].items() if "get" in methods}


CHECKS = (settings, commands, probe_paths, ports)
