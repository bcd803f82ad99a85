"""Makes swaps with the `function` that is on the path: the part of the bench that any commit runs.

Only what has been there for long is used, so that old commits can be compared with. Told by a file
of tasks; writes pictures and clips, and report.json beside that file.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.service.service import Service

    Tasks = list[tuple[dict[str, Any], list[bytes], bytes]]


async def photos(service: Service, tasks: Tasks) -> dict[str, Any]:
    """Swap the largest face of each target; file and warnings by the pair's name."""
    from function.faces.select import Selection
    from function.problems import Problem
    from function.requests import SwapRequest, Upload
    from function.telemetry.timings import Timings

    report: dict[str, Any] = {}
    for task, shown, target in tasks:
        sources = tuple(Upload(photo, "source") for photo in shown)
        chosen = Selection.parse("largest")
        wanted = SwapRequest(sources, Upload(target, "target"), chosen, format="png")
        try:
            result = await service.swap(wanted, Timings())
        except Problem as problem:
            print(f"{task['name']}: {problem}", file=sys.stderr)
            continue
        every = dict.fromkeys((*result.faces[0].warnings, *result.warnings))
        report[task["name"]] = {"warnings": [*map(str, every)], "image": result.image}
    return report


async def clips(service: Service, tasks: Tasks) -> dict[str, Any]:
    """Swap clips; the number of swapped frames."""
    from function.requests import ClipRequest, Upload
    from function.telemetry.timings import Timings

    report = {}
    for task, shown, _ in tasks:
        files = Path(task["target"]), Path(task["out"])
        wanted = ClipRequest((Upload(shown[0], "source"),), *files, quality=100)
        result = await service.clip(wanted, Timings())
        report[task["name"]] = {"frames": result.swapped}
    return report


async def swapped(told: dict[str, Tasks]) -> dict[str, Any]:
    """Do all tasks with one service, as it serves, but without a watermark."""
    from function.process.wiring.service import build_service
    from function.settings import load

    service = build_service(load({"EMBER_WATERMARK": "off"}))
    await service.load()
    report = await photos(service, told["photos"])
    report |= await clips(service, told["clips"])
    service.close()
    return report


def _sources(task: dict[str, Any]) -> list[bytes]:
    """The photos of the person who is put in: "source", and "source1" and so on."""
    return [Path(task[role]).read_bytes() for role in sorted(task) if role.startswith("source")]


def main(told: Path) -> None:
    """Do what the file says, with the code that PYTHONPATH names."""
    import function

    tree = Path(str(function.__file__)).parents[1]
    tasks = json.loads(told.read_text())
    if str(tree) != tasks["tree"]:
        raise SystemExit(f"the code of {tree} runs, not that of {tasks['tree']}")
    read = {
        kind: [
            (task, _sources(task), Path(task["target"]).read_bytes())
            for task in tasks.get(kind, [])
        ]
        for kind in ("photos", "clips")
    }
    report = asyncio.run(swapped(read))
    for task, *_ in read["photos"]:
        if found := report.get(task["name"]):
            Path(task["out"]).write_bytes(found.pop("image"))
    told.with_name("report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
