"""`python -m tests.figures.rooms` draws docs/rooms.svg: the rooms, and the way of a swap."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "rooms.svg"

WIDTH, HEIGHT = 960, 656
INK, SOFT, WAY = "#111827", "#6b7280", "#c2410c"
FUNCTION, WARMUP, KEEPALIVE = "#eff6ff", "#ecfdf5", "#fdf2f8"
LINES = {FUNCTION: "#1d4ed8", WARMUP: "#047857", KEEPALIVE: "#be185d"}


@dataclass(frozen=True)
class Room:
    """A box: the folder's path, what it is for, where it stands, and its colour."""

    path: str
    what: str
    x: int
    y: int
    width: int
    fill: str = FUNCTION

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + TALL / 2


TALL = 52
ROOMS = [
    Room("function/cli", "commands", 24, 64, 150),
    Room("function/process", "start, port, wiring", 190, 64, 530),
    Room("function/http", "requests, answers", 190, 148, 150),
    Room("function/background", "jobs, events", 352, 148, 190),
    Room("function/service", "engines, the steps of a swap, health", 190, 232, 530),
    Room("function/settings", "declared once", 24, 148, 150),
    Room("function/storage", "URIs of requests", 24, 316, 150),
    Room("function/weights", "files of operators", 24, 232, 150),
    Room("function/redis", "asking Redis, in time", 24, 400, 150),
    Room("function/video", "clips, frame by frame", 190, 316, 165),
    Room("function/trust", "gate, marks, audit", 372, 316, 165),
    Room("function/faces", "find, know, swap", 555, 316, 165),
    Room("function/admission", "who may have what", 555, 148, 165),
    Room("function/images", "decode, encode", 190, 400, 165),
    Room("function/runtime", "permits, batches", 372, 400, 165),
    Room("function/telemetry", "logs, metrics, spans", 555, 400, 165),
    Room(
        "warmup",
        "manifest, store, objects, plans, replica: from start to ready",
        190,
        506,
        530,
        WARMUP,
    ),
    Room("keepalive", "from outside", 770, 148, 166, KEEPALIVE),
    Room("keepalive/prescaler", "the warm floor", 770, 232, 166, KEEPALIVE),
    Room("keepalive/rollout", "a new image", 770, 316, 166, KEEPALIVE),
    Room("keepalive/doctor", "what would be refused", 770, 400, 166, KEEPALIVE),
    Room("keepalive/planning", "simulate, plan", 770, 506, 166, KEEPALIVE),
]
STEPS = [
    ("function/http", "headers"),
    ("function/admission", "identity, lane, deadline, load"),
    ("function/http", "the body, as bytes"),
    ("function/admission", "price, slot"),
    ("function/service", "one request of the service"),
    ("function/images", "bytes to pixels"),
    ("function/trust", "whether it may be swapped"),
    ("function/faces", "find, know, swap"),
    ("function/runtime", "each model, in batches"),
    ("function/trust", "marks in the pixels"),
    ("function/images", "pixels to bytes"),
    ("function/trust", "metadata, signature, audit"),
    ("function/http", "the answer"),
]


def svg() -> str:
    """The figure."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="13">'
    )
    parts = [
        head,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(24, 34, "Rooms, the higher using the lower; and the way of one swap", INK, 17),
    ]
    numbers: dict[str, list[int]] = {}
    for number, (path, _) in enumerate(STEPS, 1):
        numbers.setdefault(path, []).append(number)
    for room in ROOMS:
        line = LINES[room.fill]
        parts.append(
            f'<rect x="{room.x}" y="{room.y}" width="{room.width}" height="{TALL}" rx="8" '
            f'fill="{room.fill}" stroke="{line}"/>'
        )
        parts.append(_text(room.x + 12, room.y + 21, f"{room.path}/", INK, 13, bold=True))
        parts.append(_text(room.x + 12, room.y + 40, room.what, SOFT, 12))
        for place, number in enumerate(reversed(numbers.get(room.path, []))):
            x = room.x + room.width - 4 - place * 22
            parts.append(f'<circle cx="{x}" cy="{room.y}" r="10" fill="{WAY}"/>')
            parts.append(_text(x, room.y + 4, str(number), "#ffffff", 11, anchor="middle"))
    for number, (_, what) in enumerate(STEPS, 1):
        column, row = divmod(number - 1, 5)
        x, y = 24 + column * 310, 582 + row * 15
        parts.append(_text(x, y, f"{number}  {what}", WAY, 12))
    return "\n".join([*parts, "</svg>", ""])


def _text(
    x: float,
    y: float,
    text: str,
    fill: str,
    size: int,
    *,
    bold: bool = False,
    anchor: str = "start",
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" fill="{fill}" font-size="{size}" text-anchor="{anchor}"{weight}>'
        f"{escape(text)}</text>"
    )


if __name__ == "__main__":
    FILE.write_text(svg())
