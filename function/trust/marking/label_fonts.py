"""Fonts of labels, opened with Pillow; it is found out what they have no glyphs for."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from function.trust.marking.label_choice import LabelFont
from function.trust.marking.label_texts import FONTS, LATIN
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from PIL.ImageFont import FreeTypeFont

PROBE = 200
"""A size in which proportions of a font are looked at, in pixels."""


@lru_cache(maxsize=64)
def font_for(text: str, language: str, own: Path | None) -> LabelFont:
    """The font that has all glyphs of a text.

    Args:
        text: what is to be written.
        language: whose forms glyphs have that several languages share.
        own: the operator's font file; None for the built-in ones.

    Raises:
        SettingsError: there is none, and what to do about it.
    """
    names = dict.fromkeys((FONTS.get(language, LATIN), LATIN, *FONTS.values()))
    fonts = [LabelFont(own)] if own else [LabelFont(name=name) for name in names]
    lacking = {font: _lacking(text, font) for font in fonts}
    least = min(lacking, key=lambda font: len(lacking[font]))
    if not lacking[least]:
        return least
    if own:
        raise SettingsError([f"EMBER_LABEL_FONT ({own}) has no glyphs for {lacking[least]!r}."])
    problem = (
        f"EMBER_LABEL_TEXT has {lacking[least]!r}, for which the built-in fonts have no glyphs:"
        " name a font that has all of it with EMBER_LABEL_FONT."
    )
    raise SettingsError([problem])


@lru_cache(maxsize=32)
def opened(font: LabelFont, size: int) -> FreeTypeFont:
    """A font in a size, in pixels.

    Raises:
        SettingsError: the operator's is none.
    """
    from PIL import ImageFont

    basic = ImageFont.Layout.BASIC  # Raqm puts letters elsewhere, and is not everywhere
    if font.path is None:
        with as_file(files("function.trust.marking") / "fonts" / font.name) as path:
            return ImageFont.truetype(str(path), size, layout_engine=basic)
    try:
        return ImageFont.truetype(str(font.path), size, layout_engine=basic)
    except OSError:
        problem = f"EMBER_LABEL_FONT ({font.path}) is no font that can be read."
        raise SettingsError([problem]) from None


def _lacking(text: str, font: LabelFont) -> str:
    """The letters of a text that a font has no glyph for: it draws them as it draws no letter."""
    probe = opened(font, PROBE)

    def drawn(letter: str) -> tuple[tuple[int, int], bytes]:
        mask = probe.getmask(letter)
        return mask.size, bytes(mask)

    nothing = drawn("\U0010ffff")
    letters = dict.fromkeys(letter for letter in text if not letter.isspace())
    return "".join(letter for letter in letters if drawn(letter) == nothing)
