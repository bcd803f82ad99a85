"""Reads from any file what tells whether it is a swap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from function.images import kinds
from function.images.decode import decode
from function.problems import Problem
from function.service.verification import Verification
from function.telemetry.timings import Timings
from function.trust.marking import metadata
from function.trust.statement import SOURCE_TYPES
from function.trust.watermark.policy import WhichMarks
from function.trust.watermark.watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.pipeline import Pipeline
    from function.images.kinds import FileKind
    from function.images.picture import Picture
    from function.requests import Upload
    from function.trust.marker import Marker
    from function.trust.marking.provenance import FoundMetadata
    from function.trust.watermark.watermark import WatermarkReading
    from function.video.limits import ClipLimits

    Frames = Iterator[tuple[NDArray[np.uint8], list[Face]]]

_MOST_FACES = 64
"""Of a picture, in which marks are looked for."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Says what files carry; it computes, so it runs in threads.

    Attributes:
        pipeline: finds faces.
        marker: has the keys, and reads signatures.
        max_pixels: the largest image that is decoded.
        clips: what videos may have.
    """

    pipeline: Pipeline
    marker: Marker
    max_pixels: int
    clips: ClipLimits

    def verify(self, upload: Upload, timings: Timings) -> Verification:
        """What a photo, an animation or a video carries.

        Raises:
            Problem: it can neither be decoded nor carries anything.
        """
        notes: list[str] = []
        with timings.span("read"):
            carried = metadata.read(upload.data)
            said = _said(carried)
            signed = self._signature(upload.data, carried, notes)
        size = 0, 0
        marks: tuple[WatermarkReading, ...] = ()
        try:
            size, marks = self._pixels(upload, timings)
        except Problem as problem:
            if not said and not signed:
                raise
            notes.append(f"Its pixels were not looked at. {problem.detail}")
        return Verification(
            kinds.media_type(upload.data),
            size,
            signed,
            said,
            tuple(_mark(each) for each in marks),
            _says_swap(signed, said),
            self._lost(signed, said, marks),
            tuple(notes),
        )

    def _pixels(
        self, upload: Upload, timings: Timings
    ) -> tuple[tuple[int, int], tuple[WatermarkReading, ...]]:
        """The size and the watermarks of a file."""
        kind = upload.clip
        if kind and not kind.still:
            try:
                return self._video(upload.data, kind, timings)
            except Problem as problem:  # of a clip, which is a target elsewhere
                detail = problem.detail.replace("The target", "The file")
                raise Problem(
                    problem.code, detail, **{**problem.extra, "image": upload.field}
                ) from None
        with timings.span("decode"):
            picture = decode(
                upload.data,
                max_pixels=self.max_pixels,
                name=upload.field,
                media_type=upload.media_type,
            )
        return picture.size, self._photo(picture, timings)

    def _photo(self, picture: Picture, timings: Timings) -> tuple[WatermarkReading, ...]:
        faces = self._found(picture, timings)
        watermark = Watermark(self.marker.keys)
        with timings.span("watermark"):
            found = watermark.read_faces(picture.pixels, faces)
            whole = watermark.read_picture(picture.pixels)
        return (*found, *([whole] if whole else []))

    def _video(
        self, data: bytes, kind: FileKind, timings: Timings
    ) -> tuple[tuple[int, int], tuple[WatermarkReading, ...]]:
        from function.video.decoder import decoder

        with decoder():
            from function.video.facts import examine
            from function.video.looks import looks
            from function.video.reader import VideoReader
        with TemporaryDirectory(prefix="ember-verify-") as folder:
            path = Path(folder, f"file{kind.suffix}")
            path.write_bytes(data)
            facts = examine(path, kind, self.clips)
            reader = VideoReader(path, kind, self.clips)

            def frames() -> Frames:
                for picture in looks(reader, facts):
                    yield picture.pixels, self._found(picture, Timings())

            try:
                with timings.span("watermark"):
                    found = Watermark(self.marker.keys).read_frames(frames())
            finally:
                reader.close()
        return facts.upright, (found,) if found else ()

    def _found(self, picture: Picture, timings: Timings) -> list[Face]:
        """The largest faces of a picture."""
        faces = self.pipeline.find(picture, timings, identify=False)
        return sorted(faces, key=lambda face: -face.detection.box.area)[:_MOST_FACES]

    def _signature(
        self, data: bytes, carried: FoundMetadata, notes: list[str]
    ) -> dict[str, Any] | None:
        """Who has signed a file with C2PA, and whether it is as it was then."""
        read = self.marker.manifests
        if read is None:
            if carried.manifest:
                notes.append("It is signed (C2PA), and this server cannot read that.")
            return None
        from function.trust.marking.c2pa_reader import BrokenManifestError, ManifestState

        try:
            found = read(data, "")
        except BrokenManifestError as error:
            notes.append(f"It has a signature (C2PA) that cannot be read: {error}")
            return None
        if found is None:
            return None
        return {
            "valid": found.valid,
            "trusted": found.state is ManifestState.TRUSTED,
            "by": found.signed_by,
            "when": found.signed_at or None,
            "swap": bool(found.request_id),
            "problems": list(found.errors),
        }

    def _lost(
        self,
        signed: Mapping[str, Any] | None,
        said: Mapping[str, Any] | None,
        marks: tuple[WatermarkReading, ...],
    ) -> tuple[str, ...]:
        """What a file that was made here had, as far as it shows that it was."""
        if not signed and not said and not marks:
            return ()
        had = {
            "signature": (self.marker.signer is not None, signed),
            "metadata": (True, said),
            "watermark": (self.marker.which is not WhichMarks.OFF, marks),
        }
        return tuple(name for name, (expected, found) in had.items() if expected and not found)


def _said(found: FoundMetadata) -> dict[str, Any] | None:
    """What a file says of itself; None where it says nothing."""
    if not found.source_type and not found.software and not found.aigc:
        return None
    return {
        "source_type": found.source_type.removeprefix(SOURCE_TYPES) or None,
        "software": found.software or None,
        "request_id": found.request_id or None,
        "aigc": dict(found.aigc) if found.aigc else None,
    }


def _says_swap(signed: Mapping[str, Any] | None, said: Mapping[str, Any] | None) -> bool:
    """Whether Ember has written there that it is a swap; others use the same terms for more."""
    ours = bool(said and said["software"] and said["software"].startswith("Ember "))
    return ours or bool(signed and signed["valid"] and signed["swap"])


def _mark(found: WatermarkReading) -> dict[str, Any]:
    return {
        "payload": found.text,
        "key": found.key_id,
        "confidence": round(found.confidence, 1),
        "where": str(found.place),
        "face": found.face,
    }
