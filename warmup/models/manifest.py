"""The manifest: which models a replica needs, and how to know that a file is the right one.

docs/models.md describes the file; `read` checks all of it and names everything that is wrong.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from warmup.failures import ManifestError
from warmup.models.file import File
from warmup.models.licence import permissive
from warmup.settings.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SCHEMES = ("gs", "https", "http", "file")


@dataclass(frozen=True, slots=True)
class GoldenEntry:
    """A known input and the output that the model must give for it.

    Attributes:
        input, output: `.npy` files beside the manifest.
        min_cosine: how alike the output must be, at least.
    """

    input: Path
    output: Path
    min_cosine: float


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of the manifest.

    Attributes:
        role: the stage that it serves: "detect", "landmarks", "identity", ….
        family: which code knows its inputs and outputs.
        file: its graph.
        licence: SPDX expression.
        preload: whether it is loaded at start, not when it is first needed.
        variants: other graphs for the same role by name, e.g. a smaller one to be ready earlier.
        buckets: batch sizes to warm; empty for those of the family.
        golden: the check after loading, if there is one.
        options: what the family lets one choose.
    """

    role: str
    family: str
    file: File
    licence: str
    preload: bool = True
    variants: tuple[File, ...] = ()
    buckets: tuple[int, ...] = ()
    golden: GoldenEntry | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> tuple[File, ...]:
        """The graph and those of its variants."""
        return (self.file, *self.variants)

    @property
    def path(self) -> Path:
        """Where the graph lies.

        Raises:
            ManifestError: it has not been fetched.
        """
        if self.file.path is None:
            raise ManifestError(f"{self.role}: {self.file.source} has not been fetched")
        return self.file.path


def read(path: Path) -> tuple[Model, ...]:
    """Read a `models.toml`; relative URIs and file names count from its folder.

    Raises:
        ManifestError: with everything that is wrong, not only the first.
    """
    whole = Table(parsed(path), str(path))
    entries = whole.take("model", list, [])
    if not entries:
        whole.wrong("has no [[model]] entry")
    models = [_model(whole.inner(entry, f"model {n}"), path) for n, entry in enumerate(entries, 1)]
    for role, times in Counter(model.role for model in models).items():
        if times > 1 and role:
            whole.wrong(f"{times} models for the role {role}; `variants` are for that")
    whole.content.pop("golden", None)  # of whole swaps; `golden` reads it
    whole.close()
    if whole.problems:
        raise ManifestError(*whole.problems)
    return tuple(models)


def parsed(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        ManifestError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from error


def narrowed(models: Sequence[Model], variant: str | None) -> tuple[Model, ...]:
    """The models with no other variants than those of one name.

    Args:
        models: some may have no such variant.
        variant: its name, as `EMBER_VARIANT` gives it; None for no variants.

    Raises:
        ManifestError: no model has it.
    """
    kept = tuple(
        replace(
            model,
            variants=tuple(one for one in model.variants if one.name == f"{model.role}/{variant}"),
        )
        for model in models
    )
    if variant is not None and not any(model.variants for model in kept):
        known = ", ".join(one.name for model in models for one in model.variants) or "none"
        raise ManifestError(f"EMBER_VARIANT is {variant}, which no model has; there are: {known}")
    return kept


def _model(table: Table, manifest: Path) -> Model:
    role = table.take("role", str)
    if role:
        table.place += f" ({role})"
    model = Model(
        role=role,
        family=table.take("family", str),
        file=_file(table, role, manifest),
        licence=table.take("licence", str),
        preload=table.take("preload", bool, default=True),
        variants=tuple(
            _variant(table.inner(variant, f"variant {n}"), role, manifest)
            for n, variant in enumerate(table.take("variants", list, []), 1)
        ),
        buckets=tuple(table.take("buckets", list, [])),
        golden=(
            _golden(table.inner(table.content.pop("golden"), "golden"), manifest)
            if "golden" in table.content
            else None
        ),
        options=table.take("options", dict, {}),
    )
    accepted = table.take("accept_licence", bool, default=False)
    if model.licence and not permissive(model.licence) and not accepted:
        table.wrong(
            f"its licence is {model.licence}, which is not known to be permissive: read it, and set"
            " `accept_licence = true` if it allows what you do"
        )
    sizes = model.buckets
    if not all(type(size) is int and size > 0 for size in sizes) or list(sizes) != sorted({*sizes}):
        table.wrong("`buckets` must be batch sizes in rising order")
    if len({variant.name for variant in model.variants}) < len(model.variants):
        table.wrong("two variants have the same name")
    table.close()
    return model


def _variant(table: Table, role: str, manifest: Path) -> File:
    file = _file(table, f"{role}/{table.take('name', str)}", manifest)
    table.close()
    return file


def _file(table: Table, name: str, manifest: Path) -> File:
    uri = table.take("uri", str)
    before = len(table.problems)
    size = table.take("size", int)
    if size < 1 and len(table.problems) == before:
        table.wrong("`size` must be at least 1")
    sha256 = table.take("sha256", str).lower()
    if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
        table.wrong("`sha256` must be 64 hexadecimal digits")
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        table.wrong(f"`uri`: {error}")
        return File(name, uri, size, sha256)
    if uri and not parts.scheme:
        path = manifest.parent / uri
        return File(name, path.absolute().as_uri(), size, sha256, path)
    # A file:// URI has no host; what looks like one is a forgotten slash.
    if uri and (parts.scheme not in SCHEMES or not parts.path.strip("/")):
        table.wrong(f"`uri` must be a file name or begin with one of {', '.join(SCHEMES)}://")
    elif uri and bool(parts.netloc) == (parts.scheme == "file"):
        table.wrong("`uri` must be like file:///folder/name or https://host/name")
    return File(name, uri, size, sha256)


def _golden(table: Table, manifest: Path) -> GoldenEntry:
    paths = [manifest.parent / table.take(key, str) for key in ("input", "output")]
    for path in paths:
        if not path.is_file():
            table.wrong(f"there is no file {path}")
    least = table.take("min_cosine", float)
    if not -1 <= least <= 1:
        table.wrong("`min_cosine` must be from -1 to 1")
    table.close()
    return GoldenEntry(paths[0], paths[1], least)
