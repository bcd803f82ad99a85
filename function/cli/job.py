"""One swap of the command line: a target file in, a result with its name and its facts out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from function.cli.files import named_after, read
from function.cli.session import commanded
from function.request_context import current
from function.requests import Upload
from function.service import report
from function.telemetry.timings import Timings

if TYPE_CHECKING:
    from pathlib import Path

    from function.requests import SwapRequest, SwapResult
    from function.service.service import Service


@dataclass(frozen=True, slots=True)
class Done:
    """A swap that worked."""

    target: Path
    result: SwapResult
    timings: Timings

    @property
    def name(self) -> str:
        """What the result is called in a folder."""
        return named_after(self.target, self.result.media_type.removeprefix("image/"))

    @property
    def report(self) -> dict[str, Any]:
        """What is to be known about it, without the photo."""
        return report.of_swap(self.result, self.timings, image=False)

    @property
    def summary(self) -> str:
        """The same in one line for people."""
        faces = self.result.faces
        changes = ", ".join(f"{face.before:.2f} → {face.after:.2f}" for face in faces)
        count = "1 face" if len(faces) == 1 else f"{len(faces)} faces"
        warnings = f"; warnings: {', '.join(self.result.warnings)}" if self.result.warnings else ""
        return f"{count} swapped, distance to the source {changes}{warnings}"


async def swapped(service: Service, wanted: SwapRequest, target: Path) -> Done:
    """Swap one target.

    Raises:
        Problem: a photo cannot be used.
    """
    timings = Timings()
    current.set(commanded())
    upload = Upload(read(target), f"target {target.name}")
    return Done(target, await service.swap(replace(wanted, target=upload), timings), timings)
