"""The models of a folder that other face tools keep, and which of them a manifest gets.

InsightFace keeps packs in `~/.insightface/models`, FaceFusion all files in `.assets/models`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from function.faces import families
from function.faces.signatures import SIGNATURES, candidates, recognise, seen
from function.runtime import onnxfile
from function.weights.licences import LICENCES, Licence
from warmup.failures import DamagedError, ManifestError
from warmup.models import manifest
from warmup.models.outside import elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warmup.models.manifest import Model

PACKS = Path("~/.insightface/models")
"""Where InsightFace keeps its packs."""

_ROLES = tuple(dict.fromkeys(each.role for each in SIGNATURES))
_CONVERTER = "convert"
_ADDED = "gate"  # what a replica has by itself where its manifest has none


@dataclass(frozen=True, slots=True)
class Candidate:
    """One file of a known family.

    Attributes:
        path: the file.
        role, family: what it can serve as.
        rank: lower is preferred among those of one role.
    """

    path: Path
    role: str
    family: str
    rank: int

    @property
    def licence(self) -> Licence:
        """That of the published weights of its family."""
        return LICENCES[self.family]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a manifest gets.

    Attributes:
        chosen: one file for each role.
        others: files of known families that were not chosen.
        embedded: entries of the embedded set, for roles that no file serves.
    """

    chosen: tuple[Candidate, ...]
    others: tuple[Candidate, ...]
    embedded: tuple[Model, ...]


def pack(name: str) -> list[Path]:
    """The folders of an InsightFace pack: a folder, or a name for one where InsightFace keeps them.

    A swapper lies in the folder of the packs there, so that this folder counts as well.

    Raises:
        ManifestError: there is none.
    """
    root = PACKS.expanduser()
    if Path(name).is_dir():
        return [Path(name)]
    if os.sep not in name and (root / name).is_dir():
        return [root / name, root]
    known = sorted(each.name for each in root.iterdir() if each.is_dir()) if root.is_dir() else []
    raise ManifestError(
        f"there is no folder {name}, and no pack of this name in {root}"
        f" ({', '.join(known) or 'which has none'})"
    )


def scan(folders: Iterable[Path]) -> tuple[list[Candidate], list[str]]:
    """Recognise every .onnx file of some folders, not of those inside.

    Returns:
        Those of a known family, and a sentence for each other one.

    Raises:
        ManifestError: a folder cannot be read, or none has such a file.
    """
    try:
        paths = [path for each in folders for path in sorted(each.iterdir())]
    except OSError as error:
        raise ManifestError(f"{error.filename}: {error.strerror}") from error
    paths = [path for path in paths if path.suffix.lower() == ".onnx" and path.is_file()]
    if not paths:
        raise ManifestError(f"no .onnx file in {', '.join(map(str, folders))}")
    known, unknown = [], []
    for path in paths:
        try:
            graph = onnxfile.read(path)
        except DamagedError as error:
            unknown.append(str(error))
            continue
        if other := elsewhere(path):
            unknown.append(f"{path.name}: has values in a second file ({other}); make one of both")
            continue
        if found := recognise(graph):
            rank = SIGNATURES.index(found)
            known.append(Candidate(path.absolute(), found.role, found.family, rank))
        elif several := candidates(graph):
            families = " or ".join(dict.fromkeys(each.family for each in several))
            unknown.append(f"{path.name}: {families}; its name does not say which")
        else:
            unknown.append(f"{path.name}: {seen(graph)}")
    return known, unknown


def choose(known: Sequence[Candidate], picks: Sequence[str], embedded: Path) -> Choice:
    """One file for each role, and what the embedded set has to add.

    Args:
        known: what was found.
        picks: names of files, with or without suffix, that are chosen for their roles.
        embedded: the embedded manifest.

    Raises:
        ManifestError: no such file, or two for one role.
    """
    chosen: dict[str, Candidate] = {}
    for pick in picks:
        named = [each for each in known if pick in {each.path.name, each.path.stem}]
        if not named:
            names = ", ".join(sorted(each.path.stem for each in known)) or "none"
            raise ManifestError(
                f"{pick}: no model that was found has this name; there are: {names}"
            )
        if named[0].role in chosen:
            raise ManifestError(f"{pick}: {chosen[named[0].role].path.stem} is picked for its role")
        chosen[named[0].role] = named[0]
    order = sorted(known, key=lambda each: (each.rank, each.path.name))
    for each in order:
        if each.role != _CONVERTER:
            chosen.setdefault(each.role, each)
    _pair(chosen, order)
    added = _complement(chosen, manifest.read(embedded))
    for model in added:
        chosen.pop(model.role, None)
    return Choice(
        chosen=tuple(sorted(chosen.values(), key=lambda each: _ROLES.index(each.role))),
        others=tuple(each for each in order if each not in chosen.values()),
        embedded=added,
    )


def entries(choice: Choice, folder: Path, *, store: bool = False) -> str:
    """The text of a manifest; every file is read once, for its digest.

    Args:
        choice: what it gets.
        folder: where it will lie.
        store: whether files are brought into the store, instead of being used where they lie.

    Raises:
        ManifestError: a file cannot be read.
    """
    parts = [
        _entry(each.role, each.family, each.path, each.licence.expression, folder, store=store)
        for each in choice.chosen
    ]
    parts += [
        _entry(each.role, each.family, each.path, each.licence, folder) for each in choice.embedded
    ]
    return "\n".join(parts)


def write(text: str, path: Path) -> tuple[Model, ...]:
    """Write a manifest whole or not at all, when it is one that can be served.

    Returns:
        Its models.

    Raises:
        ManifestError: it is none, with everything that is wrong.
        OSError: it cannot be written.
    """
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        found = manifest.read(draft)
        families.check(found)
        draft.chmod(0o644)
        draft.replace(path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return found


def _pair(chosen: dict[str, Candidate], order: Sequence[Candidate]) -> None:
    """Choose the converter that a swapper needs: the one whose name has the swapper's word."""
    swap = chosen.get("swap")
    if swap is None or _CONVERTER in chosen:
        return
    word = SIGNATURES[swap.rank].word or swap.family.partition("_")[0]
    for each in order:
        if each.role == _CONVERTER and word in each.path.stem.lower():
            chosen[_CONVERTER] = each
            return


def _complement(chosen: dict[str, Candidate], embedded: Sequence[Model]) -> tuple[Model, ...]:
    """Models of the embedded set for what is needed and not there.

    Without a swapper it is the embedded mesh that swaps, so that landmarks must be those.
    """
    mesh = next(each for each in embedded if each.family == "face_mesh_468")
    lacking = {each.role for each in embedded if each.role not in chosen} - {_ADDED}
    if "swap" in chosen and "identity" in chosen:
        lacking.discard(mesh.role)
    else:
        lacking.add(mesh.role)
    return tuple(each for each in embedded if each.role in lacking)


def _entry(
    role: str, family: str, path: Path, licence: str, folder: Path, *, store: bool = False
) -> str:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from error
    inside = path.is_relative_to(folder.absolute())
    uri = path.as_uri() if store else str(path.relative_to(folder.absolute()) if inside else path)
    accepted = "" if Licence(licence, "").free else "accept_licence = true\n"
    return (
        "[[model]]\n"
        f"role = {_quoted(role)}\n"
        f"family = {_quoted(family)}\n"
        f"uri = {_quoted(uri)}\n"
        f"size = {size}\n"
        f'sha256 = "{digest}"\n'
        f"licence = {_quoted(licence)}\n"
        f"{accepted}"
    )


def _quoted(text: str) -> str:
    """A TOML string, which is written as in JSON."""
    return json.dumps(text, ensure_ascii=False)
