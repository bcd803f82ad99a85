"""Hard photos made from plain ones. Every edit takes RGB pixels and their face."""

from __future__ import annotations

import cv2
import numpy as np

_EYES = ([33, 133], [362, 263])
_ARMS = ((133, 362), (33, 234), (263, 454))
_BELOW_NOSE = [117, 197, 346, 361, 397, 152, 172, 132]


def same(pixels, face):
    return pixels


def gray(pixels):
    return cv2.cvtColor(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)


def lit(factor):
    """That many times the light, clipped."""

    def edit(pixels, face):
        return np.minimum(pixels * factor, 255).astype(np.uint8)

    return edit


def side_light(pixels, face):
    """From a fifth of the light on the left of the face to 1.3 times on its right."""
    along = (np.arange(pixels.shape[1]) - face.box.left) / face.box.width
    light = np.clip(along, 0, 1) * 1.1 + 0.2
    return np.clip(pixels * light[None, :, None], 0, 255).astype(np.uint8)


def scaled(factor):
    def edit(pixels, face):
        how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
        return cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=how)

    return edit


def rolled(degrees):
    def edit(pixels, face):
        matrix = cv2.getRotationMatrix2D(face.box.center, degrees, 1)
        size = pixels.shape[1], pixels.shape[0]
        return cv2.warpAffine(pixels, matrix, size, borderMode=cv2.BORDER_REPLICATE)

    return edit


def cut(side):
    """Crop the photo through the face, at 30 % of it from that side."""

    def edit(pixels, face):
        box = face.box
        x, y = int(0.3 * box.width), int(0.2 * box.height)
        left, right, top, bottom = (int(v) for v in (box.left, box.right, box.top, box.bottom))
        areas = {
            "left": np.s_[:, left + x :],
            "right": np.s_[:, : right - x],
            "top": np.s_[top + y :],
            "bottom": np.s_[: bottom - y],
        }
        return np.ascontiguousarray(pixels[areas[side]])

    return edit


def open_mouth(pixels, face):
    """Everything below the line of the lips moves down; the gap is dark."""
    mesh, amount = face.mesh, 0.12
    width = np.ptp(mesh[:, 0])
    x0, y0 = mesh[[13, 14], :2].mean(0)
    ys, xs = np.mgrid[: pixels.shape[0], : pixels.shape[1]].astype(np.float32)
    across, below = (xs - x0) / (width * 0.25), (ys - y0) / width
    drop = (
        np.exp(-(across**2)) * np.clip(below / 0.02, 0, 1) * np.exp(-((below.clip(0) / 0.5) ** 2))
    )
    moved = cv2.remap(pixels, xs, ys - amount * width * drop, cv2.INTER_LINEAR)
    gap = (below > 0) & (below < amount * np.exp(-(across**2)) * 0.9) & (np.abs(across) < 0.9)
    moved[gap] = (60, 25, 25)
    return moved


def spectacles(pixels, face, thickness=None):
    drawn, mesh = pixels.copy(), face.mesh[:, :2].round().astype(int)
    radius = int(np.ptp(mesh[:, 0]) * 0.16)
    line = max(1, radius // 6)
    for eye in _EYES:
        middle = mesh[eye].mean(0).astype(int).tolist()
        cv2.circle(drawn, middle, radius, (20, 20, 20), thickness or line, cv2.LINE_AA)
    for start, end in _ARMS:
        cv2.line(drawn, mesh[start].tolist(), mesh[end].tolist(), (20, 20, 20), line, cv2.LINE_AA)
    return drawn


def sunglasses(pixels, face):
    return spectacles(pixels, face, thickness=-1)


def face_mask(pixels, face):
    drawn = pixels.copy()
    cv2.fillPoly(drawn, [face.mesh[_BELOW_NOSE, :2].astype(np.int32)], (180, 200, 220))
    return drawn


def turned(pixels, mesh, turns):
    """The photo and its mesh turned by quarters, counter-clockwise."""
    for _ in range(turns):
        last = pixels.shape[1] - 1
        pixels = np.ascontiguousarray(np.rot90(pixels))
        mesh = np.column_stack([mesh[:, 1], last - mesh[:, 0], mesh[:, 2]]).astype(np.float32)
    return pixels, mesh


def thrown_about(mesh, rng):
    """A mesh turned in space, scaled, made noisy, moved, or with all points in one place."""
    kind = rng.integers(8)
    if kind == 0:
        return np.tile(mesh[:1], (len(mesh), 1)) + np.float32(0)
    noisy = mesh + rng.normal(0, rng.choice([0, 2, 20]), mesh.shape)
    if kind == 1:
        noisy[:, 1] = noisy[0, 1]
    roll, yaw = rng.uniform(0, 6.3), rng.uniform(-1.4, 1.4)
    spin = [[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]]
    turn = [[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]]
    scale = rng.choice([0.01, 0.1, 0.5, 1, 3])
    placed = (noisy - noisy.mean(0)) * scale @ (np.array(spin) @ turn).T
    return (placed + np.append(rng.uniform(-40, 550, 2), 0)).astype(np.float32)
