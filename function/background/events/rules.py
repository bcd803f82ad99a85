"""What to do with an upload: the rules of events.toml, of which the first that fits counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from function.faces.select import Selection, Way
from function.images.formats import FORMATS
from function.problems import Problem
from warmup.objects import gs_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.background.events.notice import Notice

MARK = "ember-of"
"""Metadata of our outputs: the upload that they were made of. What carries it is never an input."""

PLACES = ("bucket", "name", "dir", "stem", "suffix", "version", "rule")
"""What templates of names may have in braces."""


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """How the result is made; see `SwapRequest`."""

    faces: Selection = field(default_factory=Selection)
    format: str | None = None
    quality: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: for logs and explanations.
        bucket: a pattern (`*`, `?`) of buckets.
        prefix: what names begin with.
        suffixes: what names end with, in any case; empty for anything.
        media_type: a pattern of declared media types; "" for any.
        metadata: patterns that metadata of the upload has to match.
        at: where objects of the bucket are read, for stores that have no URIs of their own.
        sources: URIs of photos of the person to put in, or names of such.
        source_metadata: the metadata that names the source; "" for none.
        source_within: what URIs that uploaders name have to begin with.
        sidecar: a template of the name of a JSON object beside the upload; "" for none.
        output: a template of the URI of the result.
        options: how it is made.
    """

    name: str
    bucket: str
    output: str
    prefix: str = ""
    suffixes: tuple[str, ...] = ()
    media_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    at: str = ""
    sources: tuple[str, ...] = ()
    source_metadata: str = ""
    source_within: tuple[str, ...] = ()
    sidecar: str = ""
    options: RuleOptions = field(default_factory=RuleOptions)

    @property
    def asks(self) -> bool:
        """Whether it depends on more of an upload than its name."""
        return bool(self.media_type or self.metadata or self.source_metadata)

    def refusal(self, notice: Notice) -> str | None:
        """Why it does not fit an upload; None when it does."""
        media_type = notice.media_type or ""
        if refusal := self.refusal_of_name(notice):
            return refusal
        if self.media_type and not fnmatchcase(media_type.lower(), self.media_type):
            return f"the content type is {media_type or 'not known'}, not {self.media_type}"
        return self._wrong_metadata(notice.metadata or {})

    def refusal_of_name(self, notice: Notice) -> str | None:
        """The same, by store, bucket and name alone."""
        name = notice.name
        if notice.store != "gs" and not self.at:
            return "it does not say with `at` where objects of such a store are read"
        if not fnmatchcase(notice.bucket, self.bucket):
            return f"the bucket is {notice.bucket}, not {self.bucket}"
        if not name.startswith(self.prefix):
            return f"the name does not begin with {self.prefix}"
        if self.suffixes and not name.lower().endswith(self.suffixes):
            return f"the name does not end with {' or '.join(self.suffixes)}"
        return None

    def _wrong_metadata(self, metadata: Mapping[str, str]) -> str | None:
        for key, pattern in self.metadata.items():
            value = metadata.get(key)
            if value is None or not fnmatchcase(value, pattern):
                return f"the metadata {key} is {value or 'missing'}, not {pattern}"
        return None

    def input_uri(self, notice: Notice) -> str:
        """Where to read exactly the upload."""
        if self.at:
            return f"{self.at}{quote(notice.name)}"
        return gs_uri.uri(notice.bucket, notice.name, notice.generation)

    def latest_uri(self, notice: Notice) -> str:
        """Where to read what is now under the name of the upload."""
        return (
            f"{self.at}{quote(notice.name)}" if self.at else gs_uri.uri(notice.bucket, notice.name)
        )

    def sidecar_uri(self, notice: Notice) -> str:
        """Where the JSON object beside the upload is."""
        name = self.sidecar.format_map(_values(self, notice))
        return f"{self.at}{quote(name)}" if self.at else gs_uri.uri(notice.bucket, name)

    def output_uri(self, notice: Notice) -> str:
        """Where the result goes.

        Raises:
            Problem: `bad_value`, when the name has steps like `..` in it.
        """
        values = _values(self, notice)
        for each in values.values():
            if any(step in {".", ".."} for step in each.split("/")) or not each.isprintable():
                raise Problem("bad_value", "The name of the upload has `.`, `..` or worse in it.")
        return self.output.format_map({key: quote(value) for key, value in values.items()})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule says to an upload; `refusal` is None where it fits."""

    rule: Rule
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules, and the sources that have names."""

    rules: tuple[Rule, ...]
    sources: Mapping[str, tuple[str, ...]]

    def verdicts(self, notice: Notice) -> Iterator[Verdict]:
        """What each rule says, in their order."""
        return (Verdict(rule, rule.refusal(notice)) for rule in self.rules)

    def first(self, notice: Notice) -> Rule | None:
        """The rule that counts."""
        return next((each.rule for each in self.verdicts(notice) if not each.refusal), None)

    def of_name(self, notice: Notice) -> tuple[Rule, ...]:
        """The rules that fit as far as store, bucket and name tell."""
        return tuple(rule for rule in self.rules if not rule.refusal_of_name(notice))

    def own(self, notice: Notice) -> str | None:
        """Why an object is an output of ours rather than an upload; None when it is an upload."""
        if notice.metadata and MARK in notice.metadata:
            return f"it carries the metadata {MARK}, so Ember has made it"
        for rule in self.rules:
            bucket, prefix = fixed(rule.output)
            if notice.bucket == bucket and notice.name.startswith(prefix):
                return f"it is where the rule {rule.name} puts its outputs"
        return None

    def named(self, wish: str, within: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The URIs of a source that an uploader names.

        Raises:
            Problem: `no_source`, when it is neither a name nor within what is allowed.
        """
        if wish in self.sources:
            return self.sources[wish]
        safe = not any(step in {".", ".."} for step in wish.split("/"))
        if safe and wish.startswith(within) and within:
            return (wish,)
        raise Problem("no_source", "There is no source of the name that the upload asks for.")


def fixed(output: str) -> tuple[str, str]:
    """Bucket and beginning of the names of outputs; no bucket where they go to a folder."""
    parts = urlsplit(output.partition("{")[0])
    return (parts.netloc, parts.path[1:]) if parts.scheme == "gs" else ("", "")


def _values(rule: Rule, notice: Notice) -> dict[str, str]:
    folder, slash, last = notice.name.rpartition("/")
    path = PurePosixPath(last)
    found = {"bucket": notice.bucket, "name": notice.name, "dir": folder + slash}
    found |= {"stem": path.stem, "suffix": path.suffix, "rule": rule.name}
    return found | {"version": notice.version or "0"}


def options_of(found: Mapping[str, Any], default: RuleOptions | None = None) -> RuleOptions:
    """The options that a rule or a sidecar names.

    Raises:
        Problem: `bad_value`.
    """
    default = default or RuleOptions()
    faces = default.faces
    if found.get("faces"):
        faces = Selection.parse(str(found["faces"]))
    kind, quality = found.get("format", default.format), found.get("quality", default.quality)
    if faces.way in {Way.LIKE, Way.MAP}:
        raise Problem("bad_value", "`faces` is all, largest or index:0,2,… here.")
    if kind is not None and (not isinstance(kind, str) or kind not in FORMATS):
        raise Problem("bad_value", f"`format` is one of {', '.join(FORMATS)}.")
    if quality is not None and (type(quality) is not int or not 1 <= quality <= 100):
        raise Problem("bad_value", "`quality` is a whole number from 1 to 100.")
    return RuleOptions(faces, kind, quality)
