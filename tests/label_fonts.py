"""`python -m tests.label_fonts FOLDER` makes the fonts of labels, from Debian's Noto fonts.

FOLDER is where the packages fonts-noto-core and fonts-noto-cjk were unpacked, or /. Each font gets
only the glyphs that labels need, and no hints, which FreeType makes better itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from function.trust.marking import label_texts

FONTS = Path(label_texts.__file__).parent / "fonts"

LATIN = "usr/share/fonts/truetype/noto/NotoSans-Bold.ttf"
ASIAN = "usr/share/fonts/opentype/noto/NotoSansCJK-Bold.ttc"
NUMBERS = {"ja": 0, "ko": 1, "zh": 2}
"""Which font of the collection has the forms of a language."""

RANGES = (
    (0x20, 0x7E), (0xA0, 0x24F), (0x37A, 0x3FF), (0x400, 0x4FF), (0x1E80, 0x1E85), (0x1E9E, 0x1E9E),
    (0x2010, 0x2027), (0x2030, 0x203A), (0x20AC, 0x20AC), (0x2116, 0x2116), (0x2122, 0x2122),
)  # fmt: skip
"""What own texts may have: Latin, Greek and Cyrillic with their punctuation."""
MORE = {
    "ja": "生成人工知能によるディープフェイク画像動画写真作成加工変更編集しました、。・「」",
    "ko": "인공지능생성합성변형편집된이미지영상사진딥페이크얼굴입니다",
    "zh": "人工智能生成合成换脸本内容图片视频由辅助修改编辑技术处理,。:·“”",
}
"""What other usual labels of these languages have."""


def make(folder: Path) -> None:
    """Write every font."""
    FONTS.mkdir(exist_ok=True)
    characters = [point for first, last in RANGES for point in range(first, last + 1)]
    write(TTFont(folder / LATIN), characters, FONTS / label_texts.LATIN)
    for language, name in label_texts.FONTS.items():
        letters = label_texts.TEXTS[language] + MORE[language] + "".join(map(chr, range(32, 127)))
        font = TTFont(folder / ASIAN, fontNumber=NUMBERS[language])
        write(font, [ord(letter) for letter in letters], FONTS / name)


def write(font: TTFont, characters: list[int], path: Path) -> None:
    """Write what a font has of these characters."""
    options = subset.Options(
        hinting=False, layout_features=[], notdef_outline=True, name_IDs=[0, 1, 2, 5, 13, 14],
        desubroutinize=False, drop_tables=["vhea", "vmtx", "VORG", "DSIG", "meta", "STAT", "BASE"],
    )  # fmt: skip
    font.recalcTimestamp = False
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.save(path)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
