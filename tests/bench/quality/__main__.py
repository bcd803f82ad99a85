"""`make bench-quality`: how good swaps look, beside those of another commit.

Every pair is swapped by both codes and judged by an independent alignment (see `judge.py`). Writes
a table, and contact sheets to look at.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.quality import sheets, trees
from tests.bench.quality.judge import Judge, Verdict
from tests.bench.quality.pairs import pairs

if TYPE_CHECKING:
    from tests.bench.quality.pairs import Pair
    from tests.bench.quality.trees import Swapped

_ROWS = 6
_MEASURES = [field.name for field in fields(Verdict)]


def main() -> int:
    """Swap, judge, print; 1 when a pair could not be swapped any more."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--against", default="main", help="a commit, or a folder with its code")
    told.add_argument("--now", default=str(trees.ROOT), help="a folder with the code to judge")
    told.add_argument("--only", default="*", help="pattern of the pairs' names")
    told.add_argument("--out", type=Path, default=trees.ROOT / "build" / "quality")
    wanted = told.parse_args()
    every = pairs(wanted.only)
    made = {
        side: trees.swap_all(trees.export(ref, wanted.out / "trees"), wanted.out / side, every)
        for side, ref in (("before", wanted.against), ("now", wanted.now))
    }
    judge = Judge()
    verdicts: dict[str, dict[str, Verdict]] = {side: {} for side in made}
    for side, swapped in made.items():
        for pair in every:
            if pair.name in swapped:
                result = swapped[pair.name].pixels
                verdicts[side][pair.name] = judge.verdict(pair.source, pair.target, result)
    print(table(every, made, verdicts))
    draw(wanted.out, judge, every, made, verdicts)
    return int(len(verdicts["now"]) < len(verdicts["before"]))


def table(
    every: list[Pair],
    made: dict[str, dict[str, Swapped]],
    verdicts: dict[str, dict[str, Verdict]],
) -> str:
    """Every pair, before → now, and the means."""
    lines = ["| pair | " + " | ".join((*_MEASURES, "ms", "warnings now")) + " |"]
    lines.append("|---" * (len(_MEASURES) + 3) + "|")
    rows = []
    for pair in every:
        both = [verdicts[side].get(pair.name) for side in ("before", "now")]
        if None in both:
            lines.append(f"| {pair.name} | " + " | ".join("–" for _ in (*_MEASURES, 1, 2)) + " |")
            continue
        swaps = [made[side][pair.name] for side in ("before", "now")]
        values = np.array(
            [[*astuple(each), swap.ms] for each, swap in zip(both, swaps, strict=True) if each]
        )
        rows.append(values)
        lines.append(f"| {pair.name} | {_cells(values)} | {' '.join(swaps[1].warnings)} |")
    lines.append(f"| **mean** | {_cells(np.mean(rows, 0))} | |")
    return "\n".join(lines)


def _cells(values: np.ndarray) -> str:
    cells = []
    for name, (before, now) in zip((*_MEASURES, "ms"), values.T, strict=True):
        form = ".1f" if name == "ms" else ".2f" if name in ("lm", "ring") else ".3f"
        cells.append(f"{before:{form}} → {now:{form}}")
    return " | ".join(cells)


def draw(
    folder: Path,
    judge: Judge,
    every: list[Pair],
    made: dict[str, dict[str, Swapped]],
    verdicts: dict[str, dict[str, Verdict]],
) -> None:
    """Sheets of source, target, before, now."""
    rows = []
    for pair in every:
        if any(pair.name not in swapped for swapped in made.values()):
            continue
        place = judge.face(pair.target)
        pictures = [sheets.upright(pair.source, judge.face(pair.source))]
        texts = [f"{pair.name}\n{pair.about}", "target\n"]
        pictures.append(sheets.upright(pair.target, place))
        for side, swapped in made.items():
            found, swap = verdicts[side][pair.name], swapped[pair.name]
            pictures.append(sheets.upright(swap.pixels, place))
            texts.append(
                f"{side} {found.source:.3f} / {found.target:.3f} lm {found.lm:.1f}\n"
                f"seam {found.seam:.2f} ring {found.ring:.1f} sharp {found.sharp:.2f}"
            )
        rows.append(sheets.row(pictures, texts))
    for number in range(0, len(rows), _ROWS):
        sheets.save(folder / f"sheet-{number // _ROWS}.jpg", rows[number : number + _ROWS])
    print(f"\ncontact sheets: {folder}/sheet-*.jpg")


if __name__ == "__main__":
    sys.exit(main())
