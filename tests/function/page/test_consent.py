"""A server that wants a statement of consent, and swaps only people who are enrolled: nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.function.page.helpers import sent, stage_samples, state
from tests.running import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.function.page.conftest import Visit


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    people = tmp_path_factory.mktemp("lists") / "people.jsonl"
    people.touch()
    enrolled = {"EMBER_SOURCES": "enrolled", "EMBER_CONSENT_LIST": str(people)}
    with running(EMBER_CONSENT="stated", **enrolled) as server:
        yield server


def test_consent_is_asked_for_once_in_a_tab_and_goes_with_each_swap(visit: Visit) -> None:
    page = visit()
    forms = sent(page, "/v1/swap")
    stage_samples(page)
    page.locator("#swap").click()
    dialog = page.get_by_role("dialog", name="Does the person on the source photo agree?")
    expect(dialog).to_be_visible()
    assert not forms
    expect(dialog.get_by_label("Who states it")).to_be_focused()
    dialog.get_by_role("button", name="State it").click()
    expect(dialog).to_be_visible()  # nobody has said anything yet
    expect(dialog.get_by_role("checkbox")).not_to_be_checked()
    state(page, "Ada")
    alert = page.get_by_role("alert")
    expect(alert).to_be_focused()
    expect(alert).to_contain_text("Faces can resemble each other")
    with page.expect_response("**/v1/swap") as answer:
        page.locator("#swap").click()
    assert answer.value.json()["code"] == "refused_identity"
    assert len(forms) == 2
    said = 'name="consent"\r\n\r\nAda states that the person on the source photo agrees'
    assert all(said in form for form in forms)

    page.reload()
    expect(page.locator("#agreed")).to_contain_text("Ada: the person on the source photo agrees.")
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("#agreed")).to_be_hidden()
    assert page.evaluate("sessionStorage.getItem('ember-consent')") is None
    assert page.evaluate("localStorage.length + document.cookie.length") == 0


def test_who_does_not_state_it_gets_no_swap_and_is_not_pressed(visit: Visit) -> None:
    page = visit()
    forms = sent(page, "/v1/swap")
    stage_samples(page)
    page.locator("#swap").click()
    page.get_by_role("button", name="Not now").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#reason")).to_have_text("Not swapped.")
    page.locator("#swap").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert not forms


def test_a_server_that_asks_only_when_it_is_too_late_gets_its_statement(visit: Visit) -> None:
    page = visit()
    forms = sent(page, "/v1/swap")
    stage_samples(page)
    page.evaluate('sessionStorage.setItem(\'ember-consent\', \'{"text": " ", "who": ""}\')')
    page.locator("#swap").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert len(forms) == 1
