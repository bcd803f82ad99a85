"""Which label an output has: what the deployment, the caller's tier and the request want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.problems import Problem
from function.trust.marking.label_texts import LATIN, TEXTS

if TYPE_CHECKING:
    from pathlib import Path

NONE = "off"
"""What a request asks for that wants no label."""

_LEAST_S = 2.0  # for which a clip shows it


@dataclass(frozen=True, slots=True)
class LabelFont:
    """A font file.

    Attributes:
        path: of the operator's; None for a built-in one.
        name: of the built-in one.
    """

    path: Path | None = None
    name: str = LATIN


@dataclass(frozen=True, slots=True)
class Label:
    """What a label says, and where.

    Attributes:
        text: what it says.
        corner: such as bottom-right.
        font: has all of the text's glyphs.
        seconds: for how long clips show it, from their beginning on; 0 for throughout.
    """

    text: str
    corner: str
    font: LabelFont
    seconds: float = 0.0

    def shown(self, at: float) -> bool:
        """Whether a clip shows it at a time, in seconds from its beginning; for 2 at the least."""
        return not self.seconds or at < max(self.seconds, _LEAST_S)


class Labels:
    """The labels of a deployment.

    Args:
        always: whether every output has one.
        language: of those that are asked for without a language.
        corner: where they are.
        seconds: for how long clips show them; 0 for throughout.
        text: the operator's, in place of those of the languages; None for none.
        font: the operator's; None for the built-in ones.

    Attributes:
        always: as given.

    Raises:
        SettingsError: no font has all glyphs of the text, or the operator's is none.
    """

    def __init__(
        self,
        *,
        always: bool = False,
        language: str = "en",
        corner: str = "bottom-right",
        seconds: float = 0.0,
        text: str | None = None,
        font: Path | None = None,
    ) -> None:
        self.always, self._language = always, language
        self._corner, self._seconds = corner, seconds
        self._text, self._font = text, font
        if text or font:
            self._label(language)  # now rather than with the first output

    def wanted(self, asked: str | None = None, *, required: bool = False) -> Label | None:
        """The label of an output; None for none.

        Args:
            asked: the request's field `label`: a language of `TEXTS` or `NONE`; None without it.
            required: whether the caller's tier wants one in any case.

        Raises:
            Problem: as `check` does.
        """
        self.check(asked, required=required)
        if asked == NONE:
            return None
        if asked is None:
            return self._label(self._language) if self.always or required else None
        return self._label(asked)

    def check(self, asked: str | None, *, required: bool = False) -> None:
        """See that a request may ask for what it does; nothing is drawn or opened for that.

        Args:
            asked: as of `wanted`.
            required: likewise.

        Raises:
            Problem: `forbidden`, for asking for none where there has to be one; `bad_value`.
        """
        if asked == NONE and (self.always or required):
            raise Problem("forbidden", "Outputs have a label here.", field="label")
        if asked is not None and asked not in {*TEXTS, NONE}:
            languages = ", ".join(TEXTS)
            raise Problem("bad_value", f"`label` is one of {languages}, or {NONE}.", field="label")

    def _label(self, language: str) -> Label:
        from function.trust.marking.label_fonts import font_for

        text = self._text or TEXTS[language]
        # The operator's font is for what the operator wants to be written.
        own = self._font if self._text or language == self._language else None
        return Label(text, self._corner, font_for(text, language, own), self._seconds)
