"""The values that flow through the pipeline: boxes, detections, faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in image pixels; right and bottom are exclusive."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Width in pixels."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Height in pixels."""
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """Area in square pixels; 0 when empty."""
        return max(self.width, 0.0) * max(self.height, 0.0)

    @property
    def center(self) -> tuple[float, float]:
        """(x, y) of the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True)
class Detection:
    """What the detector says about one face.

    Attributes:
        box: the face, in pixels of the image; may reach over its border.
        points: float32 [5, 2], (x, y): left eye, right eye, nose tip, left and right corner of the
            mouth; left and right as in the image when the face is upright.
        score: 0–1.
        found_by: which pass of `function.faces.search` found it: "plain", "padded", ….
    """

    box: Box
    points: NDArray[np.float32]
    score: float
    found_by: str = "plain"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A detection that the landmark model has confirmed; without such a model, only the detection.

    Attributes:
        detection: what the detector said.
        five: float32 [5, 2], (x, y) in image pixels: left eye, right eye, nose tip, left and right
            corner of the mouth; left and right as in the image when the face is upright.
        presence: 0–1, how sure the landmark model is that this is a face.
        mesh: float32 [468, 3], x and y in image pixels, z in the same unit (smaller is nearer);
            None where the landmark model has no such mesh.
        outline: float32 [n, 2], points whose convex hull is the face; None where nothing is known
            but the five.
    """

    detection: Detection
    five: NDArray[np.float32]
    presence: float
    mesh: NDArray[np.float32] | None = None
    outline: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Pose:
    """Head pose in degrees, from the 3-D mesh. Yaw and pitch are those of the face set upright.

    Attributes:
        yaw: positive when the nose points to the image's right.
        pitch: positive when the nose points down.
        roll: positive when the head leans clockwise as seen in the image.
    """

    yaw: float
    pitch: float
    roll: float


@dataclass(frozen=True, slots=True)
class Face:
    """One analysed face.

    Attributes:
        index: its place in the documented order (left to right), 0-based.
        box: whole pixels inside the image, around the detection, the mesh and all that a swap may
            change; it changes nothing outside of it.
        detection: what the detector said.
        five, presence, mesh, outline: as in `Fitted`.
        pose: head pose.
        embedding: float32 [n] identity, or None when it was not computed.
        person: who is put in its place, by the name that the request has for a source; "" where
            there is only one.
    """

    index: int
    box: Box
    detection: Detection
    five: NDArray[np.float32]
    presence: float
    pose: Pose
    mesh: NDArray[np.float32] | None = None
    outline: NDArray[np.float32] | None = None
    embedding: NDArray[np.float32] | None = None
    person: str = ""


def mesh_of(face: Face | Fitted) -> NDArray[np.float32]:
    """The mesh of a face that was found with a landmark model that has one."""
    if face.mesh is None:
        raise ValueError("this face was found without a mesh")
    return face.mesh


def embedding_of(face: Face) -> NDArray[np.float32]:
    """The embedding of a face that was found with `identify=True`."""
    if face.embedding is None:
        raise ValueError("this face was found without identify=True")
    return face.embedding
