"""From an upload to its output in the storage; safe to be done again, and by two at once.

The storage decides: an output is written only where nothing is, or in place of the output of an
older upload of the same name, by a precondition on the generation that was seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from function import jsontext
from function.background.events.rules import MARK, options_of
from function.problems import ObjectNotFoundError, Problem, RetryLaterError
from function.requests import SwapRequest, Upload
from warmup.objects.errors import ChangedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.background.events.notice import Notice
    from function.background.events.rules import Rule, Rules
    from function.requests import Swap, SwapResult
    from function.storage.storage import Storage
    from warmup.objects.protocol import Facts

_SIDECAR_BYTES = 64 * 1024
_SIDECAR = {"source", "faces", "format", "quality"}
_MOST_SOURCES = 8
_WRITES = 4
_GENERATION = re.compile("[0-9]{1,19}")


class ExistingOutput(StrEnum):
    """What is where an output belongs."""

    NOTHING = "nothing"
    OLDER = "older"
    OURS = "ours"
    NEWER = "newer"
    FOREIGN = "foreign"


def existing_output(facts: Facts | None, notice: Notice, *, marked: bool) -> ExistingOutput:
    """What is where the output of an upload belongs: a pure decision.

    Args:
        facts: of what is there; None for nothing.
        notice: the upload.
        marked: whether outputs carry the mark there. Where they cannot, whatever is there counts as
            this output.
    """
    if facts is None:
        return ExistingOutput.NOTHING
    if not marked:
        return ExistingOutput.OURS
    name, _, version = facts.metadata.get(MARK, "").rpartition("#")
    if name != f"{notice.bucket}/{notice.name}":
        return ExistingOutput.FOREIGN
    if version == notice.version:
        return ExistingOutput.OURS
    newer = _GENERATION.fullmatch(version)
    if newer and notice.generation is not None and int(version) > notice.generation:
        return ExistingOutput.NEWER
    return ExistingOutput.OLDER


class SupersededError(Exception):
    """A newer upload of the same name has taken the place of this one."""


@dataclass(frozen=True, slots=True)
class OutputWriter:
    """Makes outputs.

    Attributes:
        storage: where photos come from and go to.
        rules: what is to be done; for the sources that have names.
        swap: makes a swap.
        limit: the most bytes of a photo.
    """

    storage: Storage
    rules: Rules
    swap: Swap
    limit: int

    async def route(self, notice: Notice) -> tuple[Notice, Rule] | str:
        """The upload as the storage knows it and the rule that counts, or why there is none.

        Content type and metadata decide which face is used, so those in the event do not count
        where the storage can be asked. An upload that is not there any more, or never was, gets the
        rule that its name fits, so that making its output reports that it is missing.

        Raises:
            Problem: `storage_unavailable`, `object_forbidden`.
        """
        fitting = self.rules.of_name(notice)
        if not fitting:
            return "no rule fits"
        uri = fitting[0].input_uri(notice)
        kept = not uri.startswith("file:")  # in folders there is neither of them
        if notice.store == "gs" or any(rule.asks for rule in fitting):
            facts = await self.storage.stat(uri)
            if facts is None:
                return notice, fitting[0]
            if kept:
                version = notice.version or str(facts.generation or "")
                notice = replace(
                    notice, version=version, media_type=facts.media_type, metadata=facts.metadata
                )
        own = self.rules.own(notice)
        rule = self.rules.first(notice)
        return own or ((notice, rule) if rule else "no rule fits")

    async def make(self, notice: Notice, rule: Rule) -> dict[str, Any]:
        """Make the output of an upload, unless it is there; what the result event says of it.

        Raises:
            SupersededError: nothing is left to do for this upload.
            Problem: it cannot be made, now or ever.
        """
        uri = rule.output_uri(notice)
        marked = uri.startswith("gs://")
        result: SwapResult | None = None
        for _ in range(_WRITES):
            facts = await self.storage.stat(uri)
            match existing_output(facts, notice, marked=marked):
                case ExistingOutput.OURS:
                    return _facts(uri, facts, result)
                case ExistingOutput.NEWER:
                    raise SupersededError
                case ExistingOutput.FOREIGN:
                    raise Problem(
                        "output_taken",
                        "Something that was not made of this upload is where its output belongs.",
                    )
            result = result or await self.swap(await self._request(notice, rule))
            try:
                generation = await self.storage.write(
                    uri,
                    result.image,
                    media_type=result.media_type,
                    metadata={MARK: notice.key, "ember-rule": rule.name},
                    if_generation_match=(facts.generation or 0) if facts else 0,
                )
            except ChangedError:
                continue  # somebody was faster, or an answer of the store got lost
            return _facts(uri, facts, result, generation)
        detail = "What is where the output belongs keeps changing."
        raise RetryLaterError("storage_unavailable", detail, 5)

    async def _request(self, notice: Notice, rule: Rule) -> SwapRequest:
        sidecar = await self._sidecar(notice, rule)
        options = options_of(sidecar, rule.options)
        uris = self._sources(notice, rule, sidecar)
        sources = [await self._photo(uri, "source") for uri in uris]
        target = await self._target(notice, rule)
        return SwapRequest(
            tuple(sources), target, options.faces, format=options.format, quality=options.quality
        )

    async def _sidecar(self, notice: Notice, rule: Rule) -> Mapping[str, Any]:
        """The JSON object beside the upload; empty when there is none."""
        if not rule.sidecar:
            return {}
        uri = rule.sidecar_uri(notice)
        try:
            found = jsontext.parse((await self.storage.read(uri, _SIDECAR_BYTES)).data)
        except ObjectNotFoundError:
            if rule.sources or rule.source_metadata:
                return {}
            raise Problem("no_source", "The JSON file beside the upload is missing.") from None
        except ValueError:
            raise Problem("bad_value", "The file beside the upload is not JSON.") from None
        if not isinstance(found, dict):
            raise Problem("bad_value", "The file beside the upload is no JSON object.")
        if unknown := sorted(found.keys() - _SIDECAR):
            raise Problem(
                "unknown_field", f"The file beside the upload has the member {unknown[0][:40]}."
            )
        return found

    def _sources(self, notice: Notice, rule: Rule, sidecar: Mapping[str, Any]) -> tuple[str, ...]:
        """The URIs of the source: what the metadata says, else the file beside it, else the rule.

        Only what the operator has written into the rule may be any URI.
        """
        named: list[str] = []
        if rule.source_metadata:
            text = (notice.metadata or {}).get(rule.source_metadata, "")
            named = [each.strip() for each in text.split(",") if each.strip()]
        if not named and "source" in sidecar:
            found = sidecar["source"]
            named = [str(each) for each in (found if isinstance(found, list) else [found])]
        if named:
            uris = tuple(
                uri for name in named for uri in self.rules.named(name, rule.source_within)
            )
        else:
            uris = tuple(
                uri for each in rule.sources for uri in self.rules.sources.get(each, (each,))
            )
        if not uris:
            raise Problem("no_source", "Neither the upload nor the rule says which source to use.")
        if len(uris) > _MOST_SOURCES:
            raise Problem("bad_value", f"A swap takes at most {_MOST_SOURCES} source photos.")
        return uris

    async def _target(self, notice: Notice, rule: Rule) -> Upload:
        try:
            return await self._photo(rule.input_uri(notice), "target")
        except ObjectNotFoundError:
            facts = await self.storage.stat(rule.latest_uri(notice))
            if facts and notice.generation not in {None, facts.generation}:
                raise SupersededError from None
            raise

    async def _photo(self, uri: str, field: str) -> Upload:
        found = await self.storage.read(uri, self.limit)
        return Upload(found.data, field, found.facts.media_type)


def _facts(
    uri: str, facts: Facts | None, result: SwapResult | None, generation: int | None = None
) -> dict[str, Any]:
    """What the result event says of an output: less, when it was there already."""
    generation = generation or (facts.generation if facts else None)
    found: dict[str, Any] = {"uri": uri}
    if uri.startswith("gs://") and generation:
        found["generation"] = str(generation)
    if result:
        found |= result.facts()
    elif facts:
        found |= {"media_type": facts.media_type, "bytes": facts.size}
    return found
