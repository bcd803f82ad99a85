"""Odd and broken image files, and what must become of each: the table for tests of all layers.

Every file is made when it is asked for.
"""

from __future__ import annotations

from tests.function.images.broken_files import broken_files
from tests.function.images.odd_file import OddFile
from tests.function.images.sound_files import sound_files

ODD_FILES: list[OddFile] = [*sound_files(), *broken_files()]

__all__ = ["ODD_FILES", "OddFile"]
