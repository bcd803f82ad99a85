"""Two small photos, each with one face."""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "openapi"

HOPPER = _FOLDER / "hopper.jpg"
COLLINS = _FOLDER / "collins.jpg"
