"""Jobs on the page: made, watched, cancelled, downloaded, deleted; and they outlive a reload."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from tests.function.page.helpers import download, stage_samples

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.function.page.conftest import Visit


def later(page: Page) -> Locator:
    """Swap the samples as a job; its row."""
    stage_samples(page)
    page.get_by_text("Options").click()
    page.get_by_label("As a job").check()
    page.locator("#swap").click()
    expect(page.locator("#reason")).to_have_text("It is a job now.")
    return page.locator("#jobs li").first


def test_a_swap_may_be_a_job_whose_result_can_be_saved_and_deleted(visit: Visit) -> None:
    page = visit()
    expect(page.locator("#jobs")).to_be_hidden()
    row = later(page)
    expect(row).to_contain_text("collins.jpg")
    expect(row.get_by_role("status")).to_have_text("Done.")
    expect(row.get_by_role("progressbar")).to_be_hidden()
    photo, name = download(page)
    assert (photo.size, photo.format, name) == ((512, 512), "JPEG", "collins-ember.jpg")
    row.get_by_role("button", name="Delete").click()
    expect(page.locator("#jobs")).to_be_hidden()
    assert page.evaluate("objectUrls.size") == 2  # those of the photos on their stages


def test_a_job_is_there_after_a_reload(visit: Visit) -> None:
    page = visit()
    expect(later(page).get_by_role("status")).to_have_text("Done.")
    page.reload()
    row = page.locator("#jobs li")
    expect(row).to_contain_text("collins.jpg")
    expect(row.get_by_role("link", name="Download")).to_be_visible()


def test_a_job_that_runs_shows_its_progress_and_can_be_cancelled(visit: Visit) -> None:
    told: dict[str, Any] = {}

    def stay(route: Any) -> None:
        """Tell of the job as it would be while it is queued, then while it runs."""
        if route.request.method == "PUT":
            told.update(route.fetch().json())
        if route.request.method == "DELETE":
            told["state"] = "cancelled"
        items = [{"state": "queued", "result": None, "problem": None}] * 4
        told["items"], told["version"] = items, told["version"] + 1
        route.fulfill(status=200, json=told)

    page = visit(lambda page: page.route("**/v1/jobs/*", stay))
    queued = {"state": "queued", "position": 3, "eta_s": 4.2}
    stage_samples(page)
    page.get_by_text("Options").click()
    page.get_by_label("As a job").check()
    told |= queued
    page.locator("#swap").click()
    row = page.locator("#jobs li")
    expect(row).to_be_visible()
    told |= queued | {"progress": {"done": 0, "total": 4}}
    expect(row.get_by_role("status")).to_have_text("Waiting behind 3, about 5\u00a0s.")
    told |= {"state": "running", "progress": {"done": 1, "total": 4}, "position": None}
    expect(row.get_by_role("status")).to_have_text("Working…")
    bar = row.get_by_role("progressbar")
    expect(bar).to_have_attribute("value", "1")
    assert bar.evaluate("bar => bar.position") == 0.25
    row.get_by_role("button", name="Cancel").click()
    expect(row.get_by_role("status")).to_have_text("Cancelled.")
    expect(row.get_by_role("button", name="Delete")).to_be_visible()


def test_a_job_that_failed_says_why(visit: Visit) -> None:
    page = visit()
    page.route(
        "**/v1/jobs/*",
        lambda route: route.fulfill(status=200, json=_failed(route.fetch().json())),
    )
    expect(later(page).get_by_role("status")).to_have_text(re.compile("no face"))


def _failed(job: dict[str, Any]) -> dict[str, Any]:
    problem = {"code": "no_face", "detail": "There is no face here.", "title": "", "hint": ""}
    items = [{"state": "failed", "result": None, "problem": problem}]
    return job | {"state": "failed", "items": items}
