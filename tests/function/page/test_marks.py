"""What a result carries, of a server that puts all marks on it: the small "i", and the check."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.function.page.helpers import stage_samples, swap
from tests.running import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.function.page.conftest import Visit

pytest.importorskip("c2pa")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    from function.trust.marking.certificate_authority import make

    folder = tmp_path_factory.mktemp("certificates")
    made = make(datetime.now(UTC), 2)
    files = {"CERTIFICATES": made.chain, "KEY": made.key, "ANCHORS": made.authority}
    environ = {}
    for name, content in files.items():
        (folder / name).write_bytes(content)
        environ[f"EMBER_C2PA_{name}"] = str(folder / name)
    with running(**environ, EMBER_PRODUCER="Studio 9") as server:
        yield server


def test_the_i_opens_and_closes_with_the_keyboard_and_says_what_the_file_carries(
    visit: Visit,
) -> None:
    page = visit()
    stage_samples(page)
    page.get_by_text("Options").click()
    page.get_by_label("Label").select_option("français")
    marks = swap(page)["marks"]
    opener = page.get_by_role("button", name="What this file carries")
    panel = page.locator("#carries")
    expect(panel).to_be_hidden()
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.press("Enter")
    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(panel.get_by_role("listitem")).to_have_text(
        [
            "MetadataSay that it is a face swap, put together from photos.",
            f"WatermarkInvisible, in face 1: {marks['watermark']['payload']}",
            f"SignatureBy {marks['signature']['by']} (C2PA).",
            f"Label“{marks['label']}”, on the picture.",
        ]
    )
    page.keyboard.press("Tab")
    expect(panel.get_by_role("button")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(opener).to_be_focused()


def test_the_panel_closes_beside_it_and_the_divider_stays_where_it_is(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    swap(page)
    divider = page.get_by_role("slider")
    before = divider.input_value()
    page.get_by_role("button", name="What this file carries").click()
    assert divider.input_value() == before
    expect(page.locator("#carries li").filter(has_text="None.")).to_have_text(["LabelNone."])
    page.locator("#result-title").click()
    expect(page.locator("#carries")).to_be_hidden()


def test_a_result_is_checked_with_one_press_and_shows_all_that_it_carries(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    marks = swap(page)["marks"]
    page.get_by_role("button", name="What this file carries").click()
    with page.expect_response("**/v1/verify") as answer:
        page.get_by_role("button", name="Check this file").click()
    told = answer.value.json()
    by = told["signature"]["by"]
    expect(page.get_by_role("img", name="collins-ember.jpg")).to_be_visible()
    title = page.get_by_role("heading", name=f"This is a face swap, made by {by}.")
    expect(title).to_be_visible()
    rows = page.locator("#found li")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text(f"SignatureValid, by {by}")
    expect(rows.nth(1)).to_contain_text("put together from photos, by Ember")
    expect(rows.nth(1)).to_contain_text(told["metadata"]["request_id"])
    expect(rows.nth(1)).to_contain_text("ContentProducer Studio 9")
    expect(rows.nth(2)).to_contain_text(f"{marks['watermark']['payload']} in face 1")
    expect(page.locator("#verify-note")).to_have_text("image/jpeg, 512 × 512")
