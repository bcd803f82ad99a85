"""The check of a file: /#verify."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from function.service.service import sample
from tests.function.page.helpers import download, named, png, stage_samples, swap, transfer

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.function.page.conftest import Visit

SIGNED = {"valid": True, "trusted": True, "swap": True, "by": "Studio 9"}
SWAP: dict[str, Any] = {
    "verdict": "swap",
    "signature": SIGNED,
    "metadata": {"software": "Ember 1.0"},
}


def check(page: Page, file: dict[str, Any]) -> None:
    """Choose a file in the view for it."""
    page.get_by_role("link", name="Check a file").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files([file])


def test_the_views_have_addresses_titles_and_a_way_back(visit: Visit) -> None:
    page = visit()
    link = page.get_by_role("link", name="Check a file")
    expect(link).not_to_have_attribute("aria-current", "page")
    link.press("Enter")
    expect(link).to_have_attribute("aria-current", "page")
    assert page.url.endswith("/#verify")
    assert page.title() == "Ember: check a file"
    expect(page.get_by_role("heading", level=1)).to_have_text("Is this a face swap?")
    expect(page.locator("header")).to_be_in_viewport()
    page.reload()
    expect(page.locator("#verify")).to_be_visible()
    page.go_back()
    expect(page.locator("#verify")).to_be_hidden()
    expect(page.locator("#swapping")).to_be_visible()
    assert page.title() == "Ember: swap a face"


def test_a_photo_that_is_no_swap_gets_no_false_certainty(visit: Visit) -> None:
    page = visit()
    check(page, named("collins.jpg", sample("collins"), "image/jpeg"))
    verdict = page.get_by_role("heading", name="No sign of a swap was found; that proves nothing.")
    expect(verdict).to_be_visible()
    expect(page.locator("#found li")).to_have_text(
        ["SignatureNone.", "MetadataNone that says so.", "WatermarkNone."]
    )


def test_a_screenshot_of_a_swap_is_still_known_and_says_what_it_has_lost(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    payload = swap(page)["marks"]["watermark"]["payload"]
    result, _ = download(page)
    shot = Image.open(io.BytesIO(png(result.convert("RGB").resize((448, 448)))))
    check(page, named("shot.png", png(shot), "image/png"))
    expect(page.locator("#found .verdict")).to_have_text(
        "This is a face swap: the mark in its pixels says so."
    )
    rows = page.locator("#found li")
    expect(rows.filter(has_text=payload)).to_contain_text("σ above chance")
    expect(rows.filter(has_text="Lost")).to_have_text(
        "LostMetadata, as happens with screenshots and messengers."
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "This is a face swap, made by Studio 9."),
        (
            {"signature": SIGNED | {"trusted": False}},
            "This is a face swap, signed as Studio 9, whom this server does not know.",
        ),
        (
            {"signature": SIGNED | {"valid": False}},
            "This is a face swap, made with Ember 1.0; its signature does not hold.",
        ),
        (
            {"signature": SIGNED | {"valid": False}, "metadata": None},
            "This is a face swap: the mark in its pixels says so; its signature does not hold.",
        ),
        ({"signature": SIGNED | {"swap": False}}, "This is a face swap, made with Ember 1.0."),
        ({"verdict": "unknown"}, "No sign of a swap was found; that proves nothing."),
    ],
)
def test_the_verdict_is_one_plain_line(
    visit: Visit, changed: dict[str, Any], sentence: str
) -> None:
    page = visit()
    script = "async (told) => (await import('/page/words.js')).verdict(told)"
    assert page.evaluate(script, SWAP | changed) == sentence


def test_a_file_that_is_dropped_anywhere_in_the_view_is_checked(visit: Visit) -> None:
    page = visit()
    page.goto("/#verify")
    data = transfer(page, sample("hopper"), "hopper.jpg", "image/jpeg")
    page.locator("#verify-title").dispatch_event("drop", {"dataTransfer": data})
    expect(page.locator("#found .verdict")).to_contain_text("proves nothing")
    expect(page.get_by_role("img", name="hopper.jpg")).to_be_visible()
    expect(page.locator("#source .photo")).to_have_count(0)


def test_a_file_that_cannot_be_checked_is_explained_and_another_one_is_taken(visit: Visit) -> None:
    page = visit()
    check(page, named("broken.jpg", b"\xff\xd8\xff\xe0 not a photo", "image/jpeg"))
    alert = page.get_by_role("alert")
    expect(alert).to_be_focused()
    expect(page.locator("#verify-note")).to_have_text("This file cannot be checked.")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Another file").click()
    chooser.value.set_files([named("hopper.jpg", sample("hopper"), "image/jpeg")])
    expect(page.locator("#found .verdict")).to_be_visible()
    expect(alert).to_be_hidden()
