"""The page of a server that asks who calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from function.admission.keys import new
from tests.function.page.helpers import await_faces, stage_samples, swap
from tests.function.page.test_jobs import later
from tests.running import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.function.page.conftest import Visit

KEY, LINE = new("ann", "vip")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(LINE)
    with running(EMBER_AUTH="keys", EMBER_KEYS=str(path)) as server:
        yield server


def give(page: Page, key: str) -> None:
    """Type a key where the page asks for one."""
    if not page.get_by_label("Your key").is_visible():
        page.get_by_text("Key", exact=True).click()
    page.get_by_label("Your key").fill(key)
    page.get_by_label("Your key").press("Enter")


def test_a_key_is_asked_for_when_it_is_needed_and_photos_are_looked_at_again(visit: Visit) -> None:
    page = visit()
    field = page.get_by_label("Your key")
    expect(field).to_be_hidden()
    page.locator("#source [data-sample=hopper]").click()
    expect(page.get_by_role("alert")).to_contain_text("does not say who sends it")
    expect(field).to_be_focused()
    give(page, "ember_wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(field).to_be_focused()
    give(page, KEY)
    await_faces(page.locator("#source"), 1)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(field).to_be_hidden()
    page.locator("#target [data-sample=collins]").click()
    await_faces(page.locator("#target"), 1)
    swap(page)


def test_a_key_stays_in_its_tab_and_nowhere_else(visit: Visit) -> None:
    page = visit()
    give(page, KEY)
    page.reload()
    stage_samples(page)
    assert page.evaluate("sessionStorage.getItem('ember-key')") == KEY
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    give(page, "")
    assert page.evaluate("sessionStorage.getItem('ember-key')") is None


def test_all_jobs_of_the_keys_owner_are_shown(visit: Visit) -> None:
    page = visit()
    give(page, KEY)
    expect(later(page).get_by_role("status")).to_have_text("Done.")
    other = visit()
    expect(other.locator("#jobs")).to_be_hidden()
    give(other, KEY)
    row = other.locator("#jobs li").first
    expect(row.get_by_role("status")).to_have_text("Done.")
    expect(row.get_by_role("link", name="Download")).to_be_visible()
