"""`make bench-quality`: how good swaps look, beside those of another commit.

Every pair is swapped by both codes and judged by an independent alignment (see `judge.py`); so are
clips of faces that hold still. Prints tables, and draws contact sheets to look at.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.quality import report, trees
from tests.bench.quality.flicker import film, measured
from tests.bench.quality.judge import Judge
from tests.bench.quality.pairs import pairs
from tests.bench.quality.people import PHOTOS, Studio, photo
from tests.bench.quality.report import Judged

if TYPE_CHECKING:
    from tests.bench.quality.pairs import Pair
    from tests.bench.quality.trees import Swapped

_CLIPS = [("hopper", "collins"), ("collins", "hopper"), ("collins", "mona_lisa")]


def main() -> int:
    """Swap, judge, print; 1 when a pair could not be swapped any more."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--against", default="main", help="a commit, or a folder with its code")
    told.add_argument("--now", default=str(trees.ROOT), help="a folder with the code to judge")
    told.add_argument("--only", default="*", help="pattern of the pairs' names")
    told.add_argument("--no-clips", action="store_true")
    told.add_argument("--out", type=Path, default=trees.ROOT / "build" / "quality")
    told.add_argument("--sheet", type=Path, help="also draw the pairs of docs/quality.md there")
    wanted = told.parse_args()
    judge = Judge()
    every = pairs(Studio(judge), wanted.only)
    code = {
        side: trees.export(ref, trees.ROOT / "build" / "quality" / "trees")
        for side, ref in (("before", wanted.against), ("now", wanted.now))
    }
    made = {
        side: trees.swap_all(tree, trees.workplace(tree, wanted.out / side), every)
        for side, tree in code.items()
    }
    judged = [
        judged_pair(judge, pair, made["before"][pair.name], made["now"][pair.name])
        for pair in every
        if all(pair.name in swapped for swapped in made.values())
    ]
    print(report.table(judged))
    print(f"\n{report.means(judged)}\n\n{report.warned(judged)}")
    report.draw(wanted.out, judge, judged)
    print(f"\ncontact sheets: {wanted.out}/sheet-*.png")
    if wanted.sheet:
        report.draw_few(wanted.sheet, judge, judged)
    if not wanted.no_clips:
        print(f"\n{clips(judge, code, wanted.out)}")
    lost = sorted(made["before"].keys() - made["now"].keys())
    print(f"no longer swapped: {', '.join(lost)}" if lost else "")
    return int(bool(lost))


def judged_pair(judge: Judge, pair: Pair, before: Swapped, now: Swapped) -> Judged:
    """A pair with what the judge says of both its swaps."""
    pictures = pair.source(), pair.target()
    right = pair.right() if pair.right else None
    verdicts = [judge.verdict(*pictures, swap.pixels, right) for swap in (before, now)]
    return Judged(pair, (before, verdicts[0]), (now, verdicts[1]))


def clips(judge: Judge, code: dict[str, Path], out: Path) -> str:
    """The table of flicker, of the target's clip and of both swaps."""
    lines = ["| clip | points: target → before → now, % | colour: target → before → now, ΔE |"]
    lines.append("|---|---|---|")
    names = [f"{one}-{other}" for one, other in _CLIPS]
    places = {side: trees.workplace(tree, out / f"{side}-clips") for side, tree in code.items()}
    for name, (_, other) in zip(names, _CLIPS, strict=True):
        film(photo(other), out / f"{name}.mp4")
    for side, tree in code.items():
        tasks = [
            {
                "name": name,
                "source": str(trees.ROOT / PHOTOS[one]),
                "target": str(out / f"{name}.mp4"),
                "out": str(places[side] / f"{name}.mp4"),
            }
            for name, (one, _) in zip(names, _CLIPS, strict=True)
        ]
        trees.run(tree, places[side], {"clips": tasks})
    for name in names:
        found = [measured(judge, folder / f"{name}.mp4") for folder in (out, *places.values())]
        jitter = " → ".join(f"{each.jitter:.2f}" for each in found)
        colour = " → ".join(f"{each.colour:.2f}" for each in found)
        lines.append(f"| {name} | {jitter} | {colour} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
