"""Counts, and prints the tables; see the package."""

from __future__ import annotations

from tests.bench import crossings
from tests.gpu import standin


def main() -> None:
    """Count and print the tables."""
    small = [role for role in crossings.SET if role not in crossings.LEFT_OUT]
    for roles in (small, list(crossings.SET)):
        before, after = (
            standin.run(crossings.counted, roles, cut) for cut in ([], list(crossings.CUT))
        )
        print("| model | runs | up | down | with cutouts: up | down |\n|---|---|---|---|---|---|")
        for role in [*roles, "all"]:
            rows = [_sum(each) if role == "all" else each[role] for each in (before, after)]
            figures = " | ".join(f"{row[way]:,}" for row in rows for way in ("up", "down"))
            print(f"| {role} | {rows[0]['runs']} | {figures} |")
        print()
    print("| model | batches of | shapes | with cutouts |\n|---|---|---|---|")
    plain, cut = (
        crossings.shapes(list(crossings.SET), []),
        crossings.shapes(list(crossings.SET), list(crossings.CUT)),
    )
    for role in crossings.SET:
        sizes = ", ".join(str(each[0][0]) for each in plain[role])
        print(f"| {role} | {sizes} | {len(plain[role])} | {len(cut[role])} |")
    print(f"| all | | {sum(map(len, plain.values()))} | {sum(map(len, cut.values()))} |\n")
    print("| one face of 300 pixels | crops | cutouts |\n|---|---|---|")
    for what, figures in crossings.times().items():
        print(f"| {what} | {' | '.join(f'{each:.2f}' for each in figures)} |")


def _sum(found):
    return {way: sum(each[way] for each in found.values()) for way in ("runs", "up", "down")}


if __name__ == "__main__":
    main()
