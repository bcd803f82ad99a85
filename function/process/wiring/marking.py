"""What marks outputs, from settings; what needs an extra is imported when it is wanted."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from function.extras import needing
from function.trust.marking.label_choice import Labels
from warmup.extras import bring
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from function.settings.marking import MarkingSettings
    from function.trust.marking.c2pa_reader import FoundManifest
    from function.trust.marking.c2pa_signer import C2paSigner

    ManifestReader = Callable[[bytes | Path, str], FoundManifest | None]
    """Reads a file, or bytes of one, of a media type; see `c2pa_reader.read`."""


def signer(marking: MarkingSettings) -> C2paSigner | None:
    """What signs outputs with C2PA; None where no certificate is given.

    Raises:
        SettingsError: it could not sign, and what to do about it.
    """
    if marking.c2pa_certificates is None:
        if marking.c2pa_key or marking.c2pa_signer:
            raise SettingsError(["There is no EMBER_C2PA_CERTIFICATES for what is to sign."])
        return None
    if (marking.c2pa_key is None) == (marking.c2pa_signer is None):
        raise SettingsError(
            ["EMBER_C2PA_CERTIFICATES needs one of EMBER_C2PA_KEY and EMBER_C2PA_SIGNER."]
        )
    with needing("EMBER_C2PA_CERTIFICATES", "c2pa"):
        from function.trust.marking.c2pa_keys import CommandSigner
        from function.trust.marking.c2pa_signer import C2paSigner, SigningReferences
    command = CommandSigner(marking.c2pa_signer) if marking.c2pa_signer else None
    references = SigningReferences(
        marking.c2pa_certificates, marking.c2pa_key, command, marking.c2pa_tsa
    )
    return C2paSigner(references, unsigned=marking.c2pa_fail == "unsigned")


def reader(marking: MarkingSettings) -> ManifestReader | None:
    """What reads manifests of C2PA; None without the extra. It is imported by the first file.

    Raises:
        SettingsError: authorities are named, and cannot be read, or the extra is not there.
    """
    path = marking.c2pa_anchors
    if find_spec("c2pa") is None:
        if path:
            raise SettingsError([f"EMBER_C2PA_ANCHORS needs c2pa: {bring('c2pa')}"])
        return None
    anchors = ""
    if path:
        from function.trust.marking.certificates import read_anchors

        anchors = read_anchors(path)

    def read(source: bytes | Path, media_type: str) -> FoundManifest | None:
        from function.trust.marking import c2pa_reader

        return c2pa_reader.read(source, media_type, anchors)

    return read


def labels(marking: MarkingSettings) -> Labels:
    """The labels that outputs can have.

    Raises:
        SettingsError: no font has all glyphs of the text, or there is something wrong with a font.
    """
    return Labels(
        always=marking.label == "on",
        language=marking.label_language,
        corner=marking.label_corner,
        seconds=marking.label_seconds,
        text=marking.label_text,
        font=marking.label_font,
    )
