"""What axe-core says of the page, at three widths, in light and dark."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from function.service.service import sample
from tests.function.page.helpers import named, stage_samples, swap

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.function.page.conftest import Visit

pytest.importorskip("axe_playwright_python")

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = "(tags) => axe.run(document, { runOnly: tags })"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 880, 1440])
def test_nothing_is_wrong_from_an_empty_page_to_a_checked_result(
    visit: Visit, width: int, scheme: Any
) -> None:
    size = {"width": width, "height": 900}
    page = visit(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    # In front of a gradient, axe does not judge contrast.
    page.evaluate("document.body.style.backgroundImage = 'none'")
    _judge(page)
    page.locator("#phase").click()
    expect(page.locator("#replica table")).to_be_visible()
    _judge(page)
    page.keyboard.press("Escape")
    page.get_by_text("Options").click()
    stage_samples(page)
    swap(page)
    page.get_by_role("button", name="What this file carries").click()
    _judge(page)
    page.get_by_role("link", name="Check a file").click()
    photo = named("hopper.jpg", sample("hopper"), "image/jpeg")
    page.locator("#verify input[type=file]").set_input_files(photo)
    expect(page.locator("#found .verdict")).to_be_visible()
    _judge(page)


def test_a_fault_would_be_found(visit: Visit) -> None:
    page = visit()
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    page.evaluate("document.getElementById('swap').textContent = ''")
    with pytest.raises(AssertionError, match="button-name"):
        _judge(page)


def _judge(page: Page) -> None:
    """See that axe finds nothing wrong with the page as it is now."""
    found = page.evaluate(_RUN, _TAGS)
    assert len(found["passes"]) > 20
    assert [(each["id"], [node["target"] for node in each["nodes"]])
            for each in found["violations"]] == []  # fmt: skip
