"""`python -m tests.figures.batching` draws docs/batching.svg: how some requests share batches.

What is drawn is decided by the queue and the buckets that serve; only time is made up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from function.request_context import Lane, RequestContext
from function.runtime.scheduling.buckets import Buckets
from function.runtime.scheduling.cost import Cost
from function.runtime.scheduling.queue import Queue, Ticket

FILE = Path(__file__).parents[2] / "docs" / "batching.svg"

BASE_MS, ITEM_MS, LARGEST = 8.0, 1.0, 4
INK = "#111827"
COLOURS = {Lane.INTERACTIVE: "#c2410c", Lane.STANDARD: "#1d4ed8", Lane.BULK: "#6b7280"}
WIDTH, LEFT, TOP, ROW, SCALE = 920, 190, 62, 30, 10.0


@dataclass(eq=False)
class Request:
    """One row of the figure; times in milliseconds."""

    at: float
    lane: Lane
    items: int
    gone: float = math.inf
    runs: list[tuple[float, float, int]] = field(default_factory=list)  # from, to, items

    @property
    def label(self) -> str:
        return f"{self.lane}, {self.items} item{'s' * (self.items > 1)}"


REQUESTS = [
    Request(0, Lane.STANDARD, 1),
    Request(2, Lane.BULK, 1),
    Request(3, Lane.BULK, 1, gone=7),
    Request(4, Lane.STANDARD, 2),
    Request(6, Lane.INTERACTIVE, 1),
    Request(12, Lane.BULK, 6),
    Request(16, Lane.INTERACTIVE, 1),
    Request(18, Lane.STANDARD, 1),
    Request(58, Lane.INTERACTIVE, 1),
]


def run() -> list[tuple[float, float, int]]:
    """Let the requests run on a device that runs one batch at a time; gives the batches."""
    queue: Queue[Request] = Queue()
    buckets, cost = Buckets(tuple(range(1, LARGEST + 1))), Cost()
    coming, batches, now = sorted(REQUESTS, key=lambda each: each.at), [], 0.0
    while coming or len(queue):
        now = now if len(queue) else max(now, coming[0].at)
        while coming and coming[0].at <= now:
            each = coming.pop(0)
            context = RequestContext(each.lane, abandoned=each.gone <= now)
            queue.put(Ticket(each, context, each.items), now)
        queue.purge(now)
        if not (head := queue.head()):
            continue
        parts = queue.take(buckets.rows(queue.room_for(head), cost, math.inf))
        items = sum(part.stop - part.start for part in parts)
        end = now + BASE_MS + ITEM_MS * items
        for part in parts:
            part.ticket.item.runs.append((now, end, part.stop - part.start))
        batches.append((now, end, items))
        now = end
    return batches


def svg() -> str:
    """The figure."""
    for each in REQUESTS:
        each.runs.clear()
    batches = run()
    bottom = TOP + ROW * len(REQUESTS) + 8
    lines = [_element("rect", width=WIDTH, height=bottom + 70, fill="white")]
    for start, end, items in batches:
        x, width = _x(start), SCALE * (end - start)
        height = bottom - TOP + 30
        lines += [
            _box(x, TOP - 30, width, height, fill="#fef3c7", stroke="#d6a31a"),
            _text(x + width / 2, TOP - 12, f"batch of {items}", "middle"),
        ]
    for number, each in enumerate(REQUESTS):
        lines += _row(each, TOP + ROW * number + ROW / 2)
    head = _element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {bottom + 70}",
        font_family="sans-serif",
        font_size=13,
    )
    return "\n".join([head.replace("/>", ">"), *lines, *_axis(bottom), "</svg>", ""])


def _row(each: Request, y: float) -> list[str]:
    """A request: its wait as a line, its runs as blocks with the number of its items."""
    colour, x = COLOURS[each.lane], _x(each.at)
    end = _x(each.runs[0][0] if each.runs else each.gone)
    lines = [
        _text(LEFT - 14, y + 4, each.label, "end", colour),
        _wait(x, end, y, colour),
        _element("circle", cx=x, cy=y, r=4, fill=colour),
        *([] if each.runs else [_cross(end, y, colour)]),
    ]
    for start, stop, items in each.runs:
        lines += [
            _box(_x(start) + 2, y - 10, SCALE * (stop - start) - 4, 20, fill=colour),
            _text(_x((start + stop) / 2), y + 4.5, str(items), "middle", "white"),
        ]
    return lines


def _axis(y: float) -> list[str]:
    """Time, and what the signs mean."""
    return [
        _element("line", x1=LEFT, y1=y, x2=_x(70), y2=y, stroke="#9ca3af"),
        *(_text(_x(ms), y + 18, f"{ms} ms", "middle") for ms in range(0, 71, 10)),
        _element("circle", cx=LEFT, cy=y + 46, r=4),
        _text(LEFT + 10, y + 50, "comes"),
        _wait(LEFT + 80, LEFT + 120, y + 46, INK),
        _text(LEFT + 128, y + 50, "waits"),
        _cross(LEFT + 204, y + 46, INK),
        _text(LEFT + 216, y + 50, "the client goes away"),
        _box(LEFT + 370, y + 36, 40, 20, fill=INK),
        _text(LEFT + 418, y + 50, "runs, with so many of its items"),
    ]


def _wait(x: float, end: float, y: float, colour: str) -> str:
    dashes = {"stroke_width": 2, "stroke_dasharray": "2 3"}
    return _element("line", x1=x, y1=y, x2=end, y2=y, stroke=colour, **dashes)


def _cross(x: float, y: float, colour: str) -> str:
    strokes = f"M {x - 4:g} {y - 4:g} l 8 8 m 0 -8 l -8 8"
    return _element("path", d=strokes, stroke=colour, stroke_width=2.5, fill="none")


def _box(x: float, y: float, width: float, height: float, **more: str) -> str:
    return _element("rect", x=x, y=y, width=width, height=height, rx=3, **more)


def _text(x: float, y: float, text: str, anchor: str = "start", fill: str = INK) -> str:
    tag = _element("text", x=x, y=y, text_anchor=anchor, fill=fill)
    return tag.replace("/>", f">{text}</text>")


def _element(name: str, **attributes: float | str) -> str:
    """An element without content; numbers are rounded."""
    values = (
        f'{key.replace("_", "-")}="{value if isinstance(value, str) else format(value, "g")}"'
        for key, value in attributes.items()
    )
    return f"<{name} {' '.join(values)}/>"


def _x(ms: float) -> float:
    return LEFT + SCALE * ms


if __name__ == "__main__":
    FILE.write_text(svg())
