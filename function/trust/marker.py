"""What is put into the pixels of outputs, and what the rest of their marks is made with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.trust.marking.label_choice import Labels
from function.trust.watermark import keys
from function.trust.watermark.keys import WatermarkKeys
from function.trust.watermark.policy import WhichMarks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Box, Face
    from function.trust.marking.c2pa_reader import FoundManifest
    from function.trust.marking.c2pa_signer import C2paSigner
    from function.trust.marking.label_choice import Label
    from function.trust.statement import Producer

    ManifestReader = Callable[[bytes | Path, str], FoundManifest | None]


@dataclass(frozen=True, slots=True)
class WatermarkedPlaces:
    """Where a picture has a watermark.

    Attributes:
        payload: what it says, 12 hexadecimal digits; "" where there is none.
        faces: for each face whether it has it.
        picture: whether the whole picture has.
    """

    payload: str = ""
    faces: tuple[bool, ...] = ()
    picture: bool = False


@dataclass(frozen=True, slots=True)
class Marker:
    """What outputs are marked with, and read with.

    Attributes:
        which: where the watermark goes.
        keys: of the watermark.
        labels: those that people see.
        producer: who answers for outputs; None where nobody is named.
        signer: signs them (C2PA); None for no signatures.
        manifests: reads signatures; None without the extra.
    """

    which: WhichMarks = WhichMarks.FACES
    keys: WatermarkKeys = field(default_factory=WatermarkKeys)
    labels: Labels = field(default_factory=Labels)
    producer: Producer | None = None
    signer: C2paSigner | None = None
    manifests: ManifestReader | None = None

    def watermark(
        self,
        pixels: NDArray[np.uint8],
        faces: Sequence[Face],
        request_id: str,
        *,
        steady: bool = False,
    ) -> WatermarkedPlaces:
        """Put the watermark into a picture, where this deployment has one.

        Args:
            pixels: uint8 [H, W, 3] RGB, changed in place.
            faces: those that were swapped.
            request_id: what it stands for.
            steady: whether it is a frame of a clip, whose marks must not flicker.
        """
        from function.trust.watermark.watermark import Watermark

        payload = self.keys.current.payload(request_id)
        made = Watermark(self.keys).mark(pixels, faces, payload, self.which, steady=steady)
        if not made.picture and not any(made.faces):
            return WatermarkedPlaces()
        return WatermarkedPlaces(keys.text(payload), made.faces, made.picture)

    def draw(
        self,
        pixels: NDArray[np.uint8],
        label: Label,
        alpha: NDArray[np.uint8] | None = None,
        *,
        steady: bool = False,
    ) -> Box:
        """Draw a label into a picture; see `marking.label.draw`. It returns where."""
        from function.trust.marking.label import Tone, draw

        return draw(pixels, label, alpha, Tone.DARK if steady else None)

    def facts(self) -> dict[str, Any]:
        """How it is, for `/readyz`."""
        signer = self.signer
        return {
            "watermark": str(self.which),
            "label": "on" if self.labels.always else "off",
            "signature": signer.certificate.subject if signer else None,
        }
