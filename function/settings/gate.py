"""Settings of the gate: which swaps are refused, whoever asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warmup.settings.readers import Reader, choice, file, switch, whole
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from pathlib import Path


def _part() -> Reader[float]:
    """A part of 1."""

    def parse(given: str) -> float:
        if not 0 < (found := float(given)) <= 1:
            raise ValueError(given)
        return found

    return Reader(parse, "a number above 0, and 1 at most")


def _list_place() -> Reader[str]:
    """The URI of a list of identities."""

    def parse(given: str) -> str:
        if given.startswith("/"):
            return f"file://{given}"
        parts = urlsplit(given)
        sound = {"gs": bool(parts.netloc), "file": not parts.netloc}.get(parts.scheme, False)
        if not sound or not parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(given)
        return given

    return Reader(parse, "the absolute path of a file, or a URI like gs://bucket/deny.jsonl")


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What is asked before a swap is made, and which swaps are refused."""

    gate: bool = variable(
        True,
        switch(),
        "Whether photos and clips are refused that look sexual, or that a swap could have made look"
        " so. Off is shown in `/readyz` and counted.",
        shown_default="true",
    )
    gate_threshold: float = variable(
        0.6,
        _part(),
        "The score of the gate's model, from 0 to 1, from which a picture is refused. Less refuses"
        " more: beaches and close-ups of skin come before portraits do.",
    )
    gate_least_age: int = variable(
        18,
        whole(0, 120),
        "How old somebody has to look to be source or target, where the manifest has a model for"
        " the role `age`. Without one nobody's age is known.",
    )
    gate_age_margin: int = variable(
        5,
        whole(0, 60),
        "By how many years more than that somebody has to look, as models are that much wrong.",
    )
    deny_list: str | None = variable(
        None,
        _list_place(),
        "The list of people who are neither source nor target; `ember deny` writes it.",
        shown_default="none",
    )
    consent_list: str | None = variable(
        None,
        _list_place(),
        "The list of people who have agreed to be sources; `ember consent` writes it.",
        shown_default="none",
    )
    sources: str = variable(
        "any",
        choice("any", "enrolled"),
        "Whose face may be put in: anybody's, or only that of people on `EMBER_CONSENT_LIST`.",
    )
    consent: str = variable(
        "off",
        choice("off", "stated", "signed"),
        "Whether each swap has to say who agrees to it: not at all, in words, or in a token signed"
        " with a key of `EMBER_CONSENT_KEYS`. A tier of the policy may ask for more.",
    )
    consent_keys: Path | None = variable(
        None,
        file(),
        "The public keys that sign consent: a JWKS, or one key as PEM.",
        shown_default="none",
    )


def contradictions(gate: GateSettings) -> list[str]:
    """What of these settings does not go together, and what to do."""
    problems = []
    if gate.sources == "enrolled" and gate.consent_list is None:
        problems.append(
            "EMBER_SOURCES is enrolled, and there is no EMBER_CONSENT_LIST; set it to a list that"
            " `ember consent add` has made."
        )
    if gate.consent == "signed" and gate.consent_keys is None:
        problems.append(
            "EMBER_CONSENT is signed, and there are no EMBER_CONSENT_KEYS; name the file of the"
            " public keys."
        )
    return problems
