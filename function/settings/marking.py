"""Settings of what outputs say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.settings.readers import choice, command, file, line, seconds, web_url
from warmup.settings.variables import variable

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("en", "de", "es", "fr", "it", "ja", "ko", "pt", "zh")
"""The languages of the built-in labels."""
CORNERS = ("top-left", "top-right", "bottom-left", "bottom-right")


@dataclass(frozen=True, slots=True)
class MarkingSettings:
    """How outputs are marked: who answers for them, signatures, the label, the watermark."""

    producer: str | None = variable(
        None,
        line(200),
        "The name or code of whoever answers for outputs; with it, their metadata have what China's"
        " GB 45438-2025 wants (`TC260:AIGC`).",
        shown_default="none",
    )
    propagator: str | None = variable(
        None,
        line(200),
        "The name or code of the service that spreads outputs, for the same metadata.",
        shown_default="none",
    )
    c2pa_certificates: Path | None = variable(
        None,
        file(),
        "The file of certificates in PEM with which outputs are signed (C2PA): the one that signs"
        " first, then those that lead to its issuer. Read again when it changes.",
        shown_default="none: outputs are not signed",
    )
    c2pa_key: Path | None = variable(
        None,
        file(),
        "The file in PEM of the private key of the first of `EMBER_C2PA_CERTIFICATES`.",
        shown_default="none",
    )
    c2pa_signer: tuple[str, ...] | None = variable(
        None,
        command(),
        "What signs where the key is elsewhere: a command that reads bytes and writes their"
        " signature, in place of `EMBER_C2PA_KEY`.",
        shown_default="none",
    )
    c2pa_tsa: str | None = variable(
        None,
        web_url(),
        "The authority that is asked for a time stamp of each signature (RFC 3161), so that it"
        " stays valid after its certificate.",
        shown_default="none: nobody is asked",
    )
    c2pa_fail: str = variable(
        "refuse",
        choice("refuse", "unsigned"),
        "What becomes of an output that is to be signed and cannot be: none is given, or it goes"
        " out without a signature, with the warning `unsigned`.",
    )
    c2pa_anchors: Path | None = variable(
        None,
        file(),
        "The file of certificates in PEM of authorities whose signatures count as trusted when"
        " files are verified.",
        shown_default="none",
    )
    label: str = variable(
        "off",
        choice("off", "on"),
        "Whether every output has a label that people see; with off, a request or a tier may want"
        " one.",
    )
    label_text: str | None = variable(
        None,
        line(120),
        "What the label says.",
        shown_default="a text in the language",
    )
    label_language: str = variable("en", choice(*LANGUAGES), "The language of the label.")
    label_corner: str = variable(
        "bottom-right", choice(*CORNERS), "The corner in which the label is."
    )
    label_seconds: float = variable(
        0.0,
        seconds(0, 86400),
        "For how long clips show the label, from their beginning on; 0 for throughout, and 2 at"
        " the least otherwise.",
    )
    label_font: Path | None = variable(
        None,
        file(),
        "The font of the label, TrueType or OpenType.",
        shown_default="the built-in one",
    )
    watermark: str = variable(
        "faces",
        choice("off", "faces", "small", "always"),
        "Where outputs have a watermark that nobody sees: in faces that are large enough; with"
        " small, in the whole picture where a face is too small for it; always in both.",
    )
    watermark_keys: Path | None = variable(
        None,
        file(),
        "The file of keys of watermarks, of which the last one marks and all are read.",
        shown_default="the built-in one, which everybody knows",
    )
