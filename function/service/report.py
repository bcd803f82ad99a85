"""Results as plain values, ready for JSON, for HTTP and the command line.

The numbers are rounded to what they are worth.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.faces.face import Box, Face, Pose
    from function.faces.pipeline import SwappedFace
    from function.quality_warning import QualityWarning
    from function.requests import ClipResult, FoundFaces, SwapResult
    from function.telemetry.timings import Timings

Report = dict[str, Any]


def of_swap(result: SwapResult, timings: Timings, *, image: bool) -> Report:
    """The facts of a swap.

    Args:
        result: the swap.
        timings: of its stages.
        image: whether the photo itself is part of it, in base64.
    """
    photo = None
    if image:
        photo = {"media_type": result.media_type, "base64": b64encode(result.image).decode()}
    return {
        "width": result.size[0],
        "height": result.size[1],
        "image": photo,
        **_sources(result),
        "faces": [_swapped(face) for face in result.faces],
        "marks": result.marks.facts() if result.marks else None,
        "warnings": _words(result.warnings),
        "timings": _stages(timings),
    }


def of_clip(result: ClipResult) -> Report:
    """The facts of a clip."""
    return {
        "media_type": result.media_type,
        "width": result.size[0],
        "height": result.size[1],
        "seconds": round(result.seconds, 3),
        "frames": result.frames,
        "swapped": result.swapped,
        "marks": result.marks.facts() if result.marks else None,
        "warnings": _words(result.warnings),
    }


def of_faces(found: FoundFaces, timings: Timings) -> Report:
    """The faces of one photo."""
    return {
        "width": found.size[0],
        "height": found.size[1],
        "order": "left_to_right",
        "faces": [of_face(face) for face in found.faces],
        "warnings": _words(found.warnings),
        "timings": _stages(timings),
    }


def of_face(face: Face) -> Report:
    """A face that was found."""
    return _face(face, ())


def _swapped(swapped: SwappedFace) -> Report:
    distances = {"before": swapped.before, "after": swapped.after, "kept": swapped.kept}
    identity = {name: round(value, 4) for name, value in distances.items()}
    named = {"source": swapped.face.person} if swapped.face.person else {}
    return _face(swapped.face, swapped.warnings) | {"identity": identity} | named


def _sources(result: SwapResult) -> Report:
    """The source face that was used; of several people those of each, by name."""
    if not result.sources:
        return {"source": _source(result.source)}
    named = {name: _source(face) for name, face in result.sources.items()}
    return {"source": None, "sources": named}


def _source(face: Face) -> Report:
    return {"box": _box(face.box), "pose": _pose(face.pose)}


def _face(face: Face, warnings: Iterable[QualityWarning]) -> Report:
    return {
        "index": face.index,
        "box": _box(face.box),
        "score": round(face.detection.score, 4),
        "found_by": face.detection.found_by,
        "points": [[round(float(x), 1), round(float(y), 1)] for x, y in face.five],
        "pose": _pose(face.pose),
        "warnings": _words(warnings),
    }


def _box(box: Box) -> dict[str, int]:
    return {side: int(getattr(box, side)) for side in ("left", "top", "right", "bottom")}


def _pose(pose: Pose) -> dict[str, float]:
    return {angle: round(getattr(pose, angle), 1) for angle in ("yaw", "pitch", "roll")}


def _words(warnings: Iterable[QualityWarning]) -> list[str]:
    return [str(warning) for warning in warnings]


def _stages(timings: Timings) -> list[Report]:
    return [
        {"stage": span.stage, "start_ms": round(span.start_ms, 2), "ms": round(span.ms, 2)}
        for span in sorted(timings.spans, key=lambda span: span.start_ms)
    ]
