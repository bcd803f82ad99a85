"""Reads what C2PA says of a file, and judges it; needs the extra c2pa, and asks nobody."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import c2pa

from function.trust.marking.c2pa_manifest import CONSENT, SWAP
from function.trust.marking.c2pa_settings import offline

if TYPE_CHECKING:
    from pathlib import Path

_MOST_TEXT = 300  # characters of one text of a manifest
_MOST_ITEMS = 50  # actions, ingredients and errors that are told, of each
_UNTRUSTED = "signingCredential.untrusted"


class ManifestState(StrEnum):
    """What a manifest is worth."""

    TRUSTED = "trusted"
    """The file is as it was signed, by somebody whose authority is trusted."""
    VALID = "valid"
    """The file is as it was signed, by whoever says that he is the signer."""
    INVALID = "invalid"
    """The file was changed since, or its signature is none."""


@dataclass(frozen=True, slots=True)
class FoundAction:
    """Something that was done to a file, as its manifest says.

    Attributes:
        action: such as c2pa.edited.
        source_type: the term of IPTC's Digital Source Type; "" for none.
        software: what has done it; "" for not said.
    """

    action: str
    source_type: str = ""
    software: str = ""


@dataclass(frozen=True, slots=True)
class FoundIngredient:
    """A file of which another was made.

    Attributes:
        relationship: parentOf for what was changed.
        format: its media type; "" for not said.
        signed_by: who signed its own manifest; None where it had none.
        errors: what was wrong with that when it was put in, as codes of C2PA.
    """

    relationship: str
    format: str = ""
    signed_by: str | None = None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundManifest:
    """What C2PA says of a file. All texts are from the file, and not to be believed as such.

    Attributes:
        state: whether it is worth anything.
        signed_by: the organisation that the certificate names, and its common name.
        software: what made the claim.
        signed_at: when, by a time stamp; "" without one.
        actions: what was done, in order.
        ingredients: of what the file was made.
        manifests: how many there are, its own and those of ingredients.
        request_id: of Ember's request; "" where Ember did not make it.
        consent: the SHA-256 of the statement of consent; "" for none.
        errors: what is wrong, as codes of C2PA with a sentence.
    """

    state: ManifestState
    signed_by: str
    software: str
    signed_at: str = ""
    actions: tuple[FoundAction, ...] = ()
    ingredients: tuple[FoundIngredient, ...] = ()
    manifests: int = 1
    request_id: str = ""
    consent: str = ""
    errors: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the file is as it was signed, by whomever."""
        return self.state is not ManifestState.INVALID


class BrokenManifestError(Exception):
    """A file has a manifest that cannot be read."""


def read(source: bytes | Path, media_type: str, anchors: str = "") -> FoundManifest | None:
    """What C2PA says of a file; None where it says nothing.

    Args:
        source: the file, or its path.
        media_type: its media type, or "" to find it from its bytes.
        anchors: certificates in PEM whose issues are trusted, beside those that the library knows.

    Raises:
        BrokenManifestError: there is a manifest, and it cannot be read, or the file cannot.
    """
    document = _document(source, media_type, anchors)
    return None if document is None else _found(document)


def flaws(data: bytes, media_type: str) -> list[str]:
    """Why readers would not take a signature, not counting that nobody trusts its authority."""
    found = read(data, media_type)
    if found is None:
        return ["there is none"]
    return [each for each in found.errors if not each.startswith(_UNTRUSTED)]


def _document(source: bytes | Path, media_type: str, anchors: str) -> dict[str, Any] | None:
    """The library's JSON about a file."""
    stream = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    with stream:
        try:
            context = c2pa.Context.from_dict(offline(anchors=anchors))
            with c2pa.Reader(media_type or None, stream, context=context) as reader:
                return dict(json.loads(reader.json()))
        except (c2pa.C2paError.ManifestNotFound, c2pa.C2paError.NotSupported):
            return None
        except (c2pa.C2paError, ValueError, RecursionError) as error:
            raise BrokenManifestError(str(error)[:_MOST_TEXT]) from None


def _found(document: dict[str, Any]) -> FoundManifest:
    manifests = _table(document.get("manifests"))
    active = _table(manifests.get(_text(document.get("active_manifest"))))
    signature = _table(active.get("signature_info"))
    assertions = {
        _text(each.get("label")): _table(each.get("data")) for each in _list(active, "assertions")
    }
    return FoundManifest(
        state=_state(document),
        signed_by=_signer(signature),
        software=" ".join(
            _text(each.get("name")) + _version(each)
            for each in _list(active, "claim_generator_info")
        ),
        signed_at=_text(signature.get("time")),
        actions=_actions(assertions),
        ingredients=tuple(_ingredient(each, manifests) for each in _list(active, "ingredients")),
        manifests=len(manifests),
        request_id=_text(assertions.get(SWAP, {}).get("request_id")),
        consent=_text(assertions.get(CONSENT, {}).get("digest")),
        errors=_errors(document),
    )


def _state(document: dict[str, Any]) -> ManifestState:
    try:
        return ManifestState(_text(document.get("validation_state")).lower())
    except ValueError:
        return ManifestState.INVALID


def _errors(document: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{_text(each.get('code'))}: {_text(each.get('explanation'))}"
        for each in _list(document, "validation_status")
    )


def _actions(assertions: dict[str, dict[str, Any]]) -> tuple[FoundAction, ...]:
    return tuple(
        FoundAction(
            _text(each.get("action")),
            _text(each.get("digitalSourceType")),
            _software(each.get("softwareAgent")),
        )
        for label, data in assertions.items()
        if label.startswith("c2pa.actions")
        for each in _list(data, "actions")
    )[:_MOST_ITEMS]


def _ingredient(entry: dict[str, Any], manifests: dict[str, Any]) -> FoundIngredient:
    results = _table(_table(entry.get("validation_results")).get("activeManifest"))
    own = entry.get("active_manifest")
    signature = _table(_table(manifests.get(_text(own))).get("signature_info"))
    return FoundIngredient(
        _text(entry.get("relationship")),
        _text(entry.get("format")),
        _signer(signature) if own is not None else None,
        tuple(_text(each.get("code")) for each in _list(results, "failure")),
    )


def _signer(signature: dict[str, Any]) -> str:
    names = (_text(signature.get("issuer")), _text(signature.get("common_name")))
    return ", ".join(filter(None, names))


def _software(value: object) -> str:
    """Name and version of a software agent, which is a text or a table."""
    if not isinstance(value, dict):
        return _text(value)
    return _text(value.get("name")) + _version(value)


def _version(entry: dict[str, Any]) -> str:
    version = _text(entry.get("version"))
    return f" {version}" if version else ""


def _text(value: object) -> str:
    """A text of the file that can be shown: not too long, and without what steers a terminal."""
    if not isinstance(value, str):
        return ""
    return "".join(each if each.isprintable() else " " for each in value[:_MOST_TEXT])


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(entry: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The first tables of a list of a table."""
    value = entry.get(name)
    found = value if isinstance(value, list) else []
    return [each for each in found if isinstance(each, dict)][:_MOST_ITEMS]
