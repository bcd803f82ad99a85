"""The report of a check: JSON for programs, and a page of the documents for people."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.gpu.check import Part

BEGIN, END = "<!-- begin check: written by make gpu-check -->\n", "<!-- end check -->\n"
_REHEARSAL = """\
**A rehearsal: no GPU could be had**, so nothing here has been measured on one, and no number in
this repository says how fast Ember is on a GPU. The rehearsal shows that the check works: its parts
ran on the CPU, or on the stand-in for NVIDIA's driver. What nobody has seen run on a device:
TensorRT's runtime, CUDA's real driver and ONNX Runtime's CUDA provider; building with the full
TensorRT, its timing cache and its compatible plans; CUDA graphs; kernels that TensorRT-RTX
compiles; memory, speed and recovery on a device.""".splitlines()
_OWN = {"state", "seconds", "share_s", "reason"}


def write(found: dict, table: Sequence[Part], report: Path, page: Path) -> None:
    """Write both; what is written by hand on the page stays."""
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(found, indent=2) + "\n")
    page.parent.mkdir(parents=True, exist_ok=True)
    text = page.read_text() if page.exists() else f"# Report from a GPU\n\n{BEGIN}{END}"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(before + BEGIN + "\n".join(_page(found, table)) + "\n\n" + END + after)


def _page(found: dict, table: Sequence[Part]) -> Iterator[str]:
    gpu, states = found["gpu"], [facts["state"] for facts in found["parts"].values()]
    if found["rehearsal"]:
        yield from _REHEARSAL
    else:
        kind = "a slice" if gpu["mig"] else "whole"
        memory = f"{gpu['bytes'] / 1e9:.0f} GB" if gpu["bytes"] else "memory that it does not tell"
        yield f"**{gpu['name']}**, {kind}, compute capability {gpu['sm']}, {memory}; driver"
        yield f"{gpu['driver']} (CUDA {gpu['cuda']})."
    counted = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    yield ""
    yield (
        f"Ember {found['ember']}, Python {found['python']}, {found['when']};"
        f" {found['seconds']:.0f} of {found['budget_s']:.0f} s: {counted}."
    )
    yield ""
    yield "| part | proves | state | seconds |"
    yield "|---|---|---|---:|"
    for part in table:
        facts = found["parts"][part.name]
        took = f"{facts['seconds']:.1f}" if "seconds" in facts else ""
        yield f"| [{part.name}](#{part.name}) | {part.proves} | {facts['state']} | {took} |"
    for part in table:
        if (facts := found["parts"][part.name])["state"] in {"failed", "skipped"}:
            yield ""
            yield f"**{part.name}** {facts['state']}: {_cell(facts['reason'])}."
    for part in table:
        facts = found["parts"][part.name]
        yield ""
        yield f"### {part.name}"
        yield ""
        yield f"{facts['state']}: {_cell(facts['reason'])}" if "reason" in facts else facts["state"]
        rows = [(key, value) for key, value in facts.items() if key not in _OWN]
        if rows:
            yield ""
            yield "| | |"
            yield "|---|---|"
            yield from (f"| {name} | {_cell(value)} |" for name, value in _flat(rows))


def _flat(rows) -> Iterator[tuple[str, object]]:
    """Pairs without tables in tables."""
    for name, value in rows:
        if isinstance(value, dict):
            yield from _flat((f"{name}, {inner}", each) for inner, each in value.items())
        else:
            yield name.replace("_", " "), value


def _cell(value: object) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return str(value).replace("|", "\\|").replace("\n", " ")
