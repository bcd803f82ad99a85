"""The text of a manifest with other places for its files, and all else as somebody wrote it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from warmup.failures import ManifestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def rewritten(path: Path, *, uri: Callable[[str, str], str], golden: Callable[[Path], str]) -> str:
    """The text of a manifest that `manifest.read` accepts, with other places.

    Args:
        path: the manifest.
        uri: gives the new URI of a file, from the one that it has and its SHA-256.
        golden: gives the new name of a file of the golden checks, from where it lies.

    Raises:
        ManifestError: a place cannot be found in the text.
    """
    text = path.read_text("utf-8")
    wanted, places = tomllib.loads(text), dict[str, str]()

    def move(table: dict[str, Any], key: str, new: str) -> None:
        places[table[key]] = new
        table[key] = new

    for entry in wanted["model"]:
        for file in (entry, *entry.get("variants", [])):
            move(file, "uri", uri(file["uri"], file["sha256"].lower()))
    for table, key in _golden(wanted):
        move(table, key, golden(path.parent / table[key]))
    for old in places:
        if _quoted(old) not in text:
            raise ManifestError(f"{path}: write {old!r} in double quotes, without escapes")
    names = "|".join(re.escape(_quoted(old)) for old in places)
    changed = re.sub(names, lambda found: _quoted(places[json.loads(found[0])]), text)
    if tomllib.loads(changed) != wanted:
        raise ManifestError(f"{path}: one text is both a place and something else; rename the file")
    return changed


def _golden(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where the content of a manifest names the files of golden checks."""
    for key in ("source", "target", "image"):
        if key in content.get("golden", {}):
            yield content["golden"], key
    for entry in content["model"]:
        for key in ("input", "output"):
            if "golden" in entry:
                yield entry["golden"], key


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
