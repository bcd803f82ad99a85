"""What the judge found, as tables and contact sheets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.quality import sheets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.bench.quality.judge import Judge, Verdict
    from tests.bench.quality.pairs import Pair
    from tests.bench.quality.trees import Swapped

_MEASURES = {
    "source": ".3f", "target": ".3f", "lm": ".2f", "seam": ".2f", "ring": ".1f", "sharp": ".2f",
    "error": ".1f",
}  # fmt: skip
_ROWS = 6
SHOWN = [
    "h-c", "c-h", "h-c-side", "c-h-warm", "c-h-grain", "collins-lincoln", "lincoln-collins",
    "mona_lisa-hopper", "hopper-mona_lisa", "collins-pearl_earring", "pearl_earring-collins",
    "tubman-collins", "collins-tubman", "douglass-hopper", "hopper-van_gogh", "collins-old",
]  # fmt: skip
"""The pairs that docs/quality.md shows."""
# a swap is bad when one of these is passed
_SOURCE, _LM, _SEAM, _RING, _ERROR = 0.5, 5.0, 0.8, 14.0, 8.0
_SHARP = (0.5, 2.5)
_NOTES = {"gray_source", "several_source_faces"}
"""Warnings that say what was done, not that it may look wrong."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One pair, with what came of it and what the judge says, by the code before and now."""

    pair: Pair
    before: tuple[Swapped, Verdict]
    now: tuple[Swapped, Verdict]


def bad(verdict: Verdict) -> list[str]:
    """Why a swap is bad: the names of the measures that say so.

    Where the right picture is known, its error stands for all but the detail.
    """
    known = verdict.error is not None
    fails = {
        "error": verdict.error is not None and verdict.error > _ERROR,
        "identity": not known and verdict.source > min(_SOURCE, verdict.target),
        "expression": not known and verdict.lm > _LM,
        "seam": not known and verdict.seam > _SEAM,
        "ring": not known and verdict.ring > _RING,
        "detail": not _SHARP[0] < verdict.sharp < _SHARP[1],
    }
    return [name for name, holds in fails.items() if holds]


def table(judged: Sequence[Judged]) -> str:
    """Every pair, before → now."""
    lines = [f"| pair | {' | '.join(_MEASURES)} | warned | bad |"]
    lines.append("|---" * (len(_MEASURES) + 3) + "|")
    for each in judged:
        values = _values(each)
        swap, verdict = each.now
        said = f"{' '.join(swap.warnings)} | {' '.join(bad(verdict))}"
        lines.append(f"| {each.pair.name} | {_cells(values)} | {said} |")
    return "\n".join(lines)


def means(judged: Sequence[Judged]) -> str:
    """The means of each kind of pairs, before → now."""
    lines = [f"| pairs | {' | '.join(_MEASURES)} |", "|---" * (len(_MEASURES) + 1) + "|"]
    for kind in (*dict.fromkeys(each.pair.kind for each in judged), ""):
        rows = [_values(each) for each in judged if kind in ("", each.pair.kind)]
        every = np.ma.masked_invalid(rows).mean(0).filled(np.nan)
        lines.append(f"| {len(rows)} {kind or 'in all'} | {_cells(every)} |")
    return "\n".join(lines)


def _values(each: Judged) -> np.ndarray:
    """The measures before and now, float [2, n]; NaN for one that is not known."""
    rows = []
    for _, verdict in (each.before, each.now):
        found = [getattr(verdict, name) for name in _MEASURES]
        rows.append([np.nan if value is None else value for value in found])
    return np.array(rows, float)


def _cells(values: np.ndarray) -> str:
    cells = []
    for form, (before, now) in zip(_MEASURES.values(), values.T, strict=True):
        cells.append("–" if np.isnan(now) else f"{before:{form}} → {now:{form}}")
    return " | ".join(cells)


def warned(judged: Sequence[Judged]) -> str:
    """The table warned × bad by measure, of the swaps as they are now."""
    counts = np.zeros((2, 2), int)
    lines = []
    for each in judged:
        swap, verdict = each.now
        why = bad(verdict)
        told = [code for code in swap.warnings if code not in _NOTES]
        counts[int(bool(told)), int(bool(why))] += 1
        if bool(told) != bool(why):
            lines.append(f"- {each.pair.name}: {' '.join(why) or ' '.join(told)}")
    (calm_good, calm_bad), (warned_good, warned_bad) = counts.tolist()
    found = warned_bad / max(warned_bad + calm_bad, 1)
    false = warned_good / max(warned_good + calm_good, 1)
    head = (
        "| | good | bad |\n|---|---|---|\n"
        f"| not warned of | {calm_good} | {calm_bad} |\n"
        f"| warned of | {warned_good} | {warned_bad} |\n\n"
        f"Of the bad ones {found:.2f} are warned of (goal ≥ 0.8), "
        f"of the good ones {false:.2f} (goal ≤ 0.1). Others than these:\n"
    )
    return "\n".join((head, *lines))


def _row(judge: Judge, each: Judged) -> sheets.Pixels:
    """Source, target, before, now."""
    source, target = each.pair.source(), each.pair.target()
    place = judge.face(target)
    pictures = [sheets.upright(source, judge.face(source)), sheets.upright(target, place)]
    texts = [f"{each.pair.name}\n{each.pair.about}", "target\n"]
    for side, (swap, found) in (("before", each.before), ("now", each.now)):
        pictures.append(sheets.upright(swap.pixels, place))
        texts.append(
            f"{side} {found.source:.3f} / {found.target:.3f} lm {found.lm:.1f}\n"
            f"seam {found.seam:.2f} ring {found.ring:.1f} sharp {found.sharp:.2f}"
        )
    return sheets.row(pictures, texts)


def draw(folder: Path, judge: Judge, judged: Sequence[Judged]) -> None:
    """Sheets of all pairs, some on each."""
    rows = [_row(judge, each) for each in judged]
    for number in range(0, len(rows), _ROWS):
        sheets.save(folder / f"sheet-{number // _ROWS:02}.png", rows[number : number + _ROWS])


def draw_few(path: Path, judge: Judge, judged: Sequence[Judged]) -> None:
    """One sheet of the pairs that are shown, two in each row."""
    by_name = {each.pair.name: each for each in judged}
    few = [_row(judge, by_name[name]) for name in SHOWN if name in by_name]
    half = len(few) // 2
    sheets.save(
        path, [np.concatenate(both, 1) for both in zip(few[:half], few[half:], strict=False)]
    )
