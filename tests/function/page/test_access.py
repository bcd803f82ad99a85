"""For everyone: the keyboard alone, a phone, dark and light, reduced motion."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.function.page.helpers import await_faces, await_result, stage_samples, swap

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.function.page.conftest import Visit

_LUMINANCE = """(scheme) => {
  const canvas = document.createElement("canvas").getContext("2d");
  return (name) => {
    canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
    const parts = canvas.fillStyle.match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16) / 255);
    const linear = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
}"""


def test_the_keyboard_alone_leads_from_load_to_download(visit: Visit) -> None:
    page = visit()
    _tab_to(page, page.locator("#source [data-sample=hopper]"))
    page.keyboard.press("Enter")
    _tab_to(page, page.locator("#target [data-sample=collins]"))
    page.keyboard.press("Space")
    await_faces(page.locator("#source"), 1)
    await_faces(page.locator("#target"), 1)
    face = page.get_by_role("button", name="Face 1 of 1")
    _tab_to(page, face, "Shift+Tab")
    page.keyboard.press("Space")
    expect(face).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Space")
    expect(face).to_have_attribute("aria-pressed", "true")
    _tab_to(page, page.get_by_role("button", name="Swap"))
    page.keyboard.press("Enter")
    await_result(page)
    divider = page.get_by_role("slider")
    _tab_to(page, divider)
    before = float(divider.input_value())
    page.keyboard.press("ArrowRight")
    assert float(divider.input_value()) == before + 1
    _tab_to(page, page.get_by_role("link", name="Download"))
    with page.expect_download():
        page.keyboard.press("Enter")


def test_an_empty_zone_opens_the_file_dialog_by_keyboard(visit: Visit) -> None:
    page = visit()
    for key in ("Enter", "Space"):
        with page.expect_file_chooser():
            page.get_by_role("button", name="Choose a face").press(key)


def test_whatever_has_the_focus_shows_it(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    page.locator("#swapping h1").click()
    page.keyboard.press("Tab")
    for _ in range(12):
        outline = page.evaluate(
            "(({ outlineStyle: s, outlineWidth: w }) => [s, parseFloat(w)])"
            "(getComputedStyle(document.activeElement))"
        )
        assert outline == ["solid", 3]
        page.keyboard.press("Tab")


def test_a_phone_shows_everything_without_scrolling_sideways(visit: Visit) -> None:
    phone = {"width": 360, "height": 740}
    page = visit(viewport=phone, has_touch=True, is_mobile=True, device_scale_factor=2)
    assert _overhang(page) == 0
    page.locator("#source [data-sample=hopper]").tap()
    page.locator("#target [data-sample=collins]").tap()
    await_faces(page.locator("#target"), 1)
    page.get_by_text("Options").tap()
    assert _overhang(page) == 0
    swap(page)
    assert _overhang(page) == 0
    expect(page.locator(".compare")).to_be_in_viewport()
    compare = page.locator(".compare")
    compare.tap(position={"x": compare.evaluate("node => node.clientWidth / 2"), "y": 20})
    assert float(page.get_by_role("slider").input_value()) == pytest.approx(50, abs=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    names = ["ink", "soft", "ember", "bad", "paper", "card", "well"]
    script = f"(names) => names.map((name) => ({_LUMINANCE})()(`--${{name}}`))"
    light = dict(zip(names, page.evaluate(script, names), strict=True))
    assert (light["paper"] < 0.1) == (scheme == "dark")
    for text in ("ink", "soft", "ember", "bad"):
        for ground in ("paper", "card", "well"):
            high, low = sorted((light[text], light[ground]), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"
    body = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", body))) < 50) == (scheme == "dark")


def test_nothing_moves_by_itself_for_those_who_ask_for_it(visit: Visit) -> None:
    page = visit(reduced_motion="reduce")
    stage_samples(page)
    swap(page)
    assert page.evaluate("document.getAnimations().length") == 0


def test_names_headings_and_language_are_there(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    swap(page)
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.title() == "Ember: swap a face"
    headings = page.locator("h1, h2, h3").evaluate_all(
        "all => all.filter((h) => h.checkVisibility()).map((h) => Number(h.tagName[1]))"
    )
    assert headings[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(headings))
    nameless = page.locator("button, input, select, a, img").evaluate_all(
        """all => all.filter((node) => node.checkVisibility() && !node.hasAttribute("alt")
          && !node.ariaLabel && !node.innerText?.trim() && !node.labels?.length).length"""
    )
    assert nameless == 0
    links = page.get_by_role("navigation").get_by_role("link").all()
    for link in links:
        assert page.request.get(link.get_attribute("href") or "").ok


def _tab_to(page: Page, goal: Locator, key: str = "Tab") -> None:
    """Press a key until the goal has the focus."""
    for _ in range(40):
        if goal.evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never reaches {goal}")


def _overhang(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
