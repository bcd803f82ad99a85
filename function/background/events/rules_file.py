"""Reads events.toml, and reports everything that is wrong with it at once."""

from __future__ import annotations

import string
import tomllib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from function.background.events.rules import PLACES, Rule, Rules, fixed, options_of
from function.problems import Problem
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MEMBERS = {
    "name", "bucket", "prefix", "suffix", "content_type", "metadata", "at", "source",
    "source_metadata", "source_within", "sidecar", "output", "faces", "format", "quality",
}  # fmt: skip
_TEXTS = (
    "bucket", "prefix", "content_type", "at", "output", "source_metadata", "sidecar", "faces",
)  # fmt: skip


def read(path: Path) -> Rules:
    """Read events.toml.

    Raises:
        SettingsError: everything that is wrong with it.
    """
    try:
        value = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError([f"{path}: {error}"]) from None
    wrong: list[str] = []
    sources: dict[str, tuple[str, ...]] = {}
    for name, found in _table(value.get("sources", {})).items():
        sources[name] = _texts(found)
        if not sources[name] or not all(_is_uri(uri) for uri in sources[name]):
            wrong.append(f"source {name}: has to be a URI or a list of URIs")
    rules: list[Rule] = []
    for place, found in enumerate(value.get("rule", []), 1):
        try:
            rules.append(_rule(_table(found), f"rule {place}", sources))
        except ValueError as error:
            wrong.append(str(error))
    if unknown := sorted(value.keys() - {"sources", "rule"}):
        wrong.append(f"`{unknown[0]}` is neither [sources] nor [[rule]]")
    if not rules and not wrong:
        wrong.append("there is no [[rule]]")
    wrong += _circles(rules)
    if wrong:
        raise SettingsError([f"{path}: {each}." for each in wrong])
    return Rules(tuple(rules), sources)


def _rule(found: Mapping[str, Any], place: str, sources: Mapping[str, object]) -> Rule:
    name = str(found.get("name", place))
    where = f"rule {name}" if "name" in found else place
    if unknown := sorted(found.keys() - _MEMBERS):
        raise ValueError(f"{where}: there is no member `{unknown[0]}`")
    texts = {key: found.get(key, "") for key in _TEXTS}
    if odd := [key for key, value in texts.items() if not isinstance(value, str)]:
        raise ValueError(f"{where}: `{odd[0]}` has to be text")
    for key in ("bucket", "output"):
        if not texts[key]:
            raise ValueError(f"{where}: `{key}` is missing")
    chosen = _texts(found.get("source", ()))
    for each in chosen:
        if each not in sources and not _is_uri(each):
            raise ValueError(f"{where}: `{each}` is neither a URI nor in [sources]")
    if not (chosen or texts["source_metadata"] or texts["sidecar"]):
        raise ValueError(f"{where}: it says no source: `source`, `source_metadata` or `sidecar`")
    _check_templates(texts["output"], texts["sidecar"], where)
    at = texts["at"]
    if at and not (_is_uri(at) and at.endswith("/")):
        raise ValueError(f"{where}: `at` has to be a URI that ends with /")
    try:
        options = options_of(found)
    except Problem as problem:
        raise ValueError(f"{where}: {problem.detail}") from None
    return Rule(
        name=name,
        bucket=texts["bucket"],
        output=texts["output"],
        prefix=texts["prefix"],
        suffixes=tuple(each.lower() for each in _texts(found.get("suffix", ()))),
        media_type=texts["content_type"].lower(),
        metadata={key: str(each) for key, each in _table(found.get("metadata", {})).items()},
        at=at,
        sources=chosen,
        source_metadata=texts["source_metadata"],
        source_within=_texts(found.get("source_within", ())),
        sidecar=texts["sidecar"],
        options=options,
    )


def _check_templates(output: str, sidecar: str, where: str) -> None:
    if urlsplit(output).scheme not in {"gs", "file"}:
        raise ValueError(f"{where}: `output` has to be a gs:// or file:// URI")
    for template in (output, sidecar):
        try:
            fields = [
                name for _, name, *_ in string.Formatter().parse(template) if name is not None
            ]
        except ValueError as error:
            raise ValueError(f"{where}: {template}: {error}") from None
        if unknown := [name for name in fields if name not in PLACES]:
            known = ", ".join(f"{{{each}}}" for each in PLACES)
            raise ValueError(f"{where}: there is no {{{unknown[0]}}}; there are {known}")
    if "{" in urlsplit(output).netloc:
        raise ValueError(f"{where}: the bucket of `output` has to be named")
    if not set("{") & set(output):
        raise ValueError(f"{where}: `output` names one object; put e.g. {{name}} into it")


def _circles(rules: list[Rule]) -> list[str]:
    """What rules would make of their own outputs."""
    wrong: list[str] = []
    for writer in rules:
        bucket, prefix = fixed(writer.output)
        wrong.extend(
            f"rule {writer.name}: its outputs would be among what rule {reader.name} reads; give"
            f" them a bucket or a prefix of their own, like gs://{bucket}/swapped/{{name}}"
            for reader in rules
            if bucket and fnmatchcase(bucket, reader.bucket) and reader.prefix.startswith(prefix)
        )
    return wrong


def _is_uri(text: str) -> bool:
    return urlsplit(text).scheme in {"gs", "https", "http", "file", "data"}


def _texts(value: object) -> tuple[str, ...]:
    """One text or a list of them."""
    found = [value] if isinstance(value, str) else value
    return tuple(str(each) for each in found) if isinstance(found, (list, tuple)) else ()


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
