"""A label that people see: its size, its contrast, its place, and who decides that there is one."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from function.problems import Problem
from function.process.wiring.marking import labels
from function.settings.marking import CORNERS, LANGUAGES, MarkingSettings
from function.trust.marking.label import Tone, draw, nearer
from function.trust.marking.label_choice import Label, Labels
from function.trust.marking.label_fonts import font_for
from function.trust.marking.label_layout import lay_out
from function.trust.marking.label_texts import FONTS, LATIN, TEXTS
from warmup.settings.variables import SettingsError

FOLDER = files("function.trust.marking") / "fonts"
LONG = "This picture was made by putting the face of an actor onto another person with AI"


def label(text=TEXTS["en"], language="en", corner="bottom-right", seconds=0.0):
    return Label(text, corner, font_for(text, language, None), seconds)


def plain(shade, width=400, height=300):
    return np.full((height, width, 3), shade, np.uint8)


def busy(width=400, height=300):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def inside(canvas, box):
    return canvas[int(box.top) : int(box.bottom), int(box.left) : int(box.right)]


def heights(layout):
    """How high each line of letters is."""
    inked = layout.letters.max(1) > 127
    edges = np.flatnonzero(np.diff(np.concatenate(([0], inked, [0]))))
    return edges[1::2] - edges[::2]


def luminance(pixels):
    """Relative luminance of sRGB, as WCAG 2.2 defines it."""
    shares = pixels / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("size", [(640, 480), (480, 853), (3000, 2000), (1000, 240), (997, 997)])
def test_letters_are_a_twentieth_of_the_shortest_side_and_hardly_more(language, size):
    text = TEXTS[language]
    layout = lay_out(text, font_for(text, language, None), *size)
    rows = np.flatnonzero(layout.letters.max(1) > 127)
    lines = 1 + np.count_nonzero(np.diff(rows) > 1 + 0.02 * min(size))
    assert lines == 1
    assert 0.05 * min(size) - 1 <= rows[-1] - rows[0] + 1 <= 0.055 * min(size) + 1


@pytest.mark.parametrize("size", [(400, 300), (300, 900), (1600, 400), (300, 300)])
def test_a_text_that_is_too_wide_is_put_into_lines_with_letters_of_the_same_size(size):
    layout = lay_out(LONG, font_for(LONG, "en", None), *size)
    height, width = layout.letters.shape
    assert width + 2 * layout.margin <= size[0]
    assert height + 2 * layout.margin <= size[1]
    assert max(heights(layout)) >= 0.05 * min(size) - 1


def test_lines_have_nearly_one_length():
    layout = lay_out(LONG, font_for(LONG, "en", None), 500, 700)
    columns = layout.letters.max(0) > 127
    assert np.flatnonzero(columns)[-1] < 460  # three lines of 500 would leave the last one short


@pytest.mark.parametrize("text", ["Donaudampfschifffahrtsgesellschaft" * 2, "脸" * 60])
def test_a_word_that_is_too_wide_is_broken(text):
    box = draw(plain(90), label(text, "zh"))
    assert box.left >= 7
    assert box.right <= 393
    assert box.height < 300 - 14


@pytest.mark.parametrize("size", [(1, 1), (2, 9), (16, 16), (40, 40), (64, 48), (5000, 12)])
def test_a_picture_that_is_too_small_for_letters_has_as_much_of_them_as_fits(size):
    canvas = plain(90, *size)
    box = draw(canvas, label())
    assert 0 <= box.left < box.right <= size[0]
    assert 0 <= box.top < box.bottom <= size[1]
    assert (inside(canvas, box) != 90).any()


def test_in_small_pictures_letters_can_still_be_read():
    layout = lay_out(TEXTS["en"], font_for(TEXTS["en"], "en", None), 100, 100)
    assert max(heights(layout)) >= 9  # 12 with what hangs below the line


# --- place ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("corner", CORNERS)
def test_it_is_in_its_corner_with_a_margin_and_changes_nothing_elsewhere(corner):
    before = busy()
    canvas = before.copy()
    box = draw(canvas, label(corner=corner))
    margin = round(0.025 * 300)
    vertical, horizontal = corner.split("-")
    assert (box.top if vertical == "top" else 300 - box.bottom) == margin
    assert (box.left if horizontal == "left" else 400 - box.right) == margin
    changed = np.argwhere((canvas != before).any(2))
    assert changed.min(0).tolist() >= [box.top, box.left]
    assert (changed.max(0) < [box.bottom, box.right]).all()
    inside(before, box)[...] = inside(canvas, box)
    assert np.array_equal(before, canvas)


def test_where_the_picture_is_transparent_the_label_is_not():
    canvas, alpha = plain(90), np.zeros((300, 400), np.uint8)
    box = draw(canvas, label(), alpha)
    assert inside(alpha, box)[5:-5, 5:-5].min() == 255
    assert np.count_nonzero(alpha) <= box.area
    opaque = np.full((300, 400), 255, np.uint8)
    draw(canvas, label(), opaque)
    assert opaque.min() == 255


# --- contrast -------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", [plain(255), plain(0), plain(127), plain(128), busy()])
@pytest.mark.parametrize("tone", [*Tone, None])
def test_letters_stand_out_from_whatever_is_below(below, tone):
    canvas = below.copy()
    chosen = label()
    box = draw(canvas, chosen, tone=tone)
    layout = lay_out(chosen.text, chosen.font, 400, 300)
    drawn = luminance(inside(canvas, box))
    tone = tone or nearer(inside(below, box))
    letters = drawn[layout.letters == 255]
    plate = drawn[(layout.letters == 0) & (layout.plate == 255)]
    if tone is Tone.DARK:
        contrast = (letters.min() + 0.05) / (plate.max() + 0.05)
    else:
        contrast = (plate.min() + 0.05) / (letters.max() + 0.05)
    assert contrast >= 8.4


def test_the_tone_is_that_of_what_is_below():
    assert (nearer(plain(20)), nearer(plain(230))) == (Tone.DARK, Tone.LIGHT)
    canvas = plain(20)
    canvas[:, 200:] = 230
    left, right = canvas.copy(), canvas.copy()
    assert inside(left, draw(left, label("AI", corner="top-left"))).min() < 20
    assert inside(right, draw(right, label("AI", corner="top-right"))).max() > 230


def test_frames_with_a_tone_are_labelled_alike():
    dark, bright = plain(0), plain(255)
    assert draw(dark, label(), tone=Tone.DARK) == draw(bright, label(), tone=Tone.DARK)
    difference = bright.astype(int) - dark
    box = draw(dark, label(), tone=Tone.DARK)
    assert set(np.unique(inside(difference, box))) >= {0, 76}
    assert inside(difference, box)[8:-8, 8:-8].max() <= 78


# --- texts and fonts ------------------------------------------------------------------------------


def test_every_language_of_the_settings_has_a_text_and_a_font_with_its_glyphs():
    assert sorted(TEXTS) == sorted(LANGUAGES)
    for language, text in TEXTS.items():
        assert font_for(text, language, None).name == FONTS.get(language, LATIN)


@pytest.mark.parametrize(
    "text", ["ΠΡΟΣΩΠΟ", "Лицо изменено ИИ", "Pół twarzy ĄĆĘ", "AI生成", "© 2026"]
)
def test_own_texts_in_usual_scripts_have_their_glyphs(text):
    assert labels(MarkingSettings(label="on", label_text=text)).wanted().text == text


@pytest.mark.parametrize(
    ("text", "lacking"), [("AI 👤 face", "👤"), ("وجه AI", "وجه"), ("龘 face", "龘")]
)
def test_a_text_with_other_glyphs_ends_the_start(text, lacking):
    with pytest.raises(SettingsError, match=f"EMBER_LABEL_TEXT has '{lacking}'.* EMBER_LABEL_FONT"):
        labels(MarkingSettings(label_text=text))


def test_an_own_font_is_taken_and_has_to_have_the_glyphs(tmp_path):
    own = tmp_path / "own.otf"
    own.write_bytes((FOLDER / "label-ko.otf").read_bytes())
    wanted = labels(MarkingSettings(label="on", label_language="ko", label_font=own)).wanted()
    assert wanted.font.path == own
    assert draw(plain(90), wanted).area
    with pytest.raises(SettingsError, match=r"EMBER_LABEL_FONT \(.*\) has no glyphs for 'ä'"):
        labels(MarkingSettings(label_language="de", label_font=own))
    own = tmp_path / "none.otf"
    own.write_text("no font")
    with pytest.raises(SettingsError, match="is no font that can be read"):
        labels(MarkingSettings(label_font=own))


def test_fonts_are_small_and_carry_their_licence():
    sizes = [len(each.read_bytes()) for each in FOLDER.iterdir() if each.name != "OFL.txt"]
    assert len(sizes) == 1 + len(FONTS)
    assert sum(sizes) < 150_000
    assert "SIL OPEN FONT LICENSE Version 1.1" in (FOLDER / "OFL.txt").read_text()


# --- who decides ----------------------------------------------------------------------------------


def test_a_request_may_ask_for_one_where_none_has_to_be():
    offered = labels(MarkingSettings(label_corner="top-left", label_seconds=5))
    assert offered.wanted() is None
    assert offered.wanted("off") is None
    french = offered.wanted("fr")
    assert (french.text, french.corner, french.seconds) == (TEXTS["fr"], "top-left", 5)


@pytest.mark.parametrize(("given", "required"), [({"always": True}, False), ({}, True)])
def test_no_request_can_be_without_one_that_has_to_be(given, required):
    here = Labels(language="zh", **given)
    assert here.wanted(required=required).text == TEXTS["zh"]
    assert here.wanted("de", required=required).text == TEXTS["de"]
    with pytest.raises(Problem) as refused:
        here.wanted("off", required=required)
    assert (refused.value.code, refused.value.extra) == ("forbidden", {"field": "label"})


def test_a_language_that_there_is_not_is_a_bad_value():
    with pytest.raises(Problem, match="`label` is one of en, de") as refused:
        Labels().wanted("tlh")
    assert refused.value.code == "bad_value"


def test_an_own_text_stands_in_every_language():
    assert Labels(text="Made up").wanted("fr").text == "Made up"


def test_clips_show_it_for_two_seconds_at_the_least():
    assert [label(seconds=0).shown(at) for at in (0, 1.99, 1000)] == [True, True, True]
    assert [label(seconds=0.5).shown(at) for at in (0, 1.99, 2)] == [True, True, False]
    assert [label(seconds=3).shown(at) for at in (2.9, 3)] == [True, False]


def test_choosing_one_needs_neither_pillow_nor_numpy():
    code = (
        "import sys; from function.process.wiring.marking import labels;"
        "from function.settings.marking import MarkingSettings;"
        "labels(MarkingSettings(label='on'));"
        "sys.exit(bool({'PIL', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
