"""Makes swaps with the `function` that is on the path: the part of the bench that any commit runs.

Only what has been there for long is used, so that old commits can be compared with. Told by a file
of tasks; writes pictures and clips, and report.json beside that file.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

RUNS = 3
"""A swap is made so often, and the fastest counts."""


def photos(tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """Swap the largest face of each target; warnings and milliseconds by the pair's name."""
    import cv2

    from function.faces.pipeline import Pipeline
    from function.faces.select import largest
    from function.images.decode import decode
    from function.service import opening
    from function.telemetry.timings import Timings
    from warmup.models import manifest

    cv2.setNumThreads(1)
    models = opening.load(manifest.read(Path(str(files("function") / "models" / "models.toml"))), 2)
    pipeline = Pipeline(models, models.swapper())
    report: dict[str, Any] = {}
    for task in tasks:
        source = decode(Path(task["source"]).read_bytes())
        target = decode(Path(task["target"]).read_bytes())
        person, _ = pipeline.portrait(source, Timings())
        found = pipeline.find(target, Timings(), identify=True)
        if person is None or not found:
            print(f"{task['name']}: no face", file=sys.stderr)
            continue
        face = largest(found)
        timings = [Timings() for _ in range(RUNS)]
        for each in timings:
            canvas, warnings = pipeline.swap(target, [face], person, each)
        (judged,) = pipeline.judge(canvas, [face], warnings, person, Timings())
        cv2.imwrite(task["out"], canvas[..., ::-1])
        ms = min(each.of("swap") for each in timings)
        report[task["name"]] = {"warnings": [str(each) for each in judged.warnings], "ms": ms}
    return report


async def clips(tasks: list[dict[str, Any]], sources: list[bytes]) -> dict[str, Any]:
    """Swap clips as the service does, without a watermark; the number of swapped frames."""
    from function.process.wiring.service import build_service
    from function.requests import ClipRequest, Upload
    from function.settings import load
    from function.telemetry.timings import Timings

    service = build_service(load({"EMBER_WATERMARK": "off"}))
    await service.load()
    report = {}
    for task, data in zip(tasks, sources, strict=True):
        files = Path(task["target"]), Path(task["out"])
        wanted = ClipRequest((Upload(data, "source"),), *files, quality=100)
        result = await service.clip(wanted, Timings())
        report[task["name"]] = {"frames": result.swapped}
    service.close()
    return report


def main(told: Path) -> None:
    """Do what the file says, with the code that PYTHONPATH names."""
    import function

    tree = Path(str(function.__file__)).parents[1]
    tasks = json.loads(told.read_text())
    if str(tree) != tasks["tree"]:
        raise SystemExit(f"the code of {tree} runs, not that of {tasks['tree']}")
    report = photos(tasks.get("photos", []))
    if wanted := tasks.get("clips"):
        sources = [Path(task["source"]).read_bytes() for task in wanted]
        report |= asyncio.run(clips(wanted, sources))
    told.with_name("report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
