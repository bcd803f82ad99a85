"""What the page says while the replica warms, when something fails, and when it is cancelled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from function.quality_warning import QualityWarning
from function.service.service import sample
from tests.function.page.helpers import (
    await_faces,
    await_result,
    named,
    png,
    put,
    stage_samples,
    swap,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.function.page.conftest import Visit


class Readyz:
    """Answers /readyz in place of the server."""

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __call__(self, page: Page) -> None:
        page.route("**/readyz", self._answer)

    def _answer(self, route: Any) -> None:
        ready = self.phase == "ready"
        told = {"ready": ready, "phase": self.phase, "models": {}}
        route.fulfill(status=200 if ready else 503, json=told)


def test_a_warming_replica_is_shown_and_waited_for(visit: Visit) -> None:
    readyz = Readyz("loading")
    page = visit(readyz)
    chip = page.locator("#phase")
    expect(chip).to_have_text("loading models…")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    page.locator("#source [data-sample=hopper]").click()
    page.locator("#target [data-sample=collins]").click()
    expect(page.locator("#target-note")).to_have_text("Waiting for the replica…")
    page.locator("#swap").click()
    expect(page.locator("#reason")).to_have_text(re.compile("starts when it is ready"))
    readyz.phase = "warming"
    expect(chip).to_have_text("warming up…")
    assert "POST" not in asked

    readyz.phase = "ready"
    await_result(page)
    expect(chip).to_have_text("ready")


def test_a_call_that_nobody_answers_yet_has_woken_somebody(visit: Visit) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page = visit(lambda page: page.route("**/readyz", hold, times=1))
    chip = page.locator("#phase")
    expect(chip).to_have_text("asking…")
    expect(chip).to_have_text("cold, waking…")
    chip.click()
    panel = page.locator("#replica")
    expect(panel).to_contain_text("choose photos meanwhile")
    expect(panel.get_by_role("table")).to_be_hidden()
    held[0].continue_()
    expect(chip).to_have_text(re.compile("^ready"))
    expect(panel).to_contain_text(re.compile("It was ready .* after its process had begun."))
    expect(panel).to_contain_text(re.compile("This page has waited .* for it"))
    expect(panel.get_by_role("rowheader", name="loading", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel.get_by_role("table")).to_be_hidden()
    expect(panel.locator("summary")).to_be_focused()


def test_a_page_that_nobody_uses_keeps_no_replica_awake(visit: Visit) -> None:
    asked: list[str] = []

    def watch(page: Page) -> None:
        page.clock.install()
        page.on("request", lambda request: asked.append(request.url))

    page = visit(watch)
    chip = page.locator("#phase")
    expect(chip).to_have_text(re.compile("^ready"))
    before = len(asked)
    page.clock.fast_forward("01:05")
    expect(chip).to_have_text("ready a while ago")
    page.clock.fast_forward("30:00")
    expect(chip).to_have_text("ready a while ago")
    assert len(asked) == before
    page.locator("#swapping h1").click()
    expect(chip).to_have_text(re.compile("^ready ·"))
    assert len(asked) > before


def test_photos_that_were_chosen_while_nobody_was_there_are_looked_at_later(visit: Visit) -> None:
    page = visit()
    expect(page.locator("#phase")).to_have_text(re.compile("^ready"))
    page.context.set_offline(True)
    put(page, "source", named("hopper.jpg", sample("hopper"), "image/jpeg"))
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    expect(page.locator("#phase")).to_have_text("cold, waking…")
    page.context.set_offline(False)
    await_faces(page.locator("#source"), 1)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_replica_that_is_not_ready_after_all_is_asked_again(visit: Visit) -> None:
    page = visit()
    answers = 0

    def refuse_once(route: Any) -> None:
        nonlocal answers
        answers += 1
        if answers == 1:
            told = {"title": "The replica is not ready yet", "code": "not_ready"}
            route.fulfill(status=503, headers={"Retry-After": "1"}, json=told)
        else:
            route.continue_()

    page.route("**/v1/faces", refuse_once)
    page.locator("#target [data-sample=collins]").click()
    await_faces(page.locator("#target"), 1)
    assert answers == 2


@pytest.mark.parametrize("phase", ["draining", "failed"])
def test_a_replica_that_leaves_says_so_and_its_refusal_is_shown(visit: Visit, phase: str) -> None:
    page = visit(Readyz(phase))
    expect(page.locator("#phase")).to_have_text(phase)
    told = {"title": "The replica is not ready yet", "code": "not_ready"}
    page.route("**/v1/faces", lambda route: route.fulfill(status=503, json=told))
    page.locator("#target [data-sample=collins]").click()
    expect(page.get_by_role("alert")).to_contain_text("The replica is not ready yet")


def test_a_broken_image_is_explained_and_removing_it_clears_the_page(visit: Visit) -> None:
    page = visit()
    with page.expect_response("**/v1/faces") as answer:
        put(page, "target", named("broken.jpg", b"\xff\xd8\xff\xe0 not a photo", "image/jpeg"))
    problem = answer.value.json()
    alert = page.get_by_role("alert")
    for member in ("title", "detail", "hint", "request_id"):
        expect(alert).to_contain_text(problem[member])
    expect(page.locator("#target-note")).to_have_text("This photo cannot be used.")
    expect(page.locator("#swap")).to_have_attribute("aria-disabled", "true")

    page.get_by_role("button", name="Remove broken.jpg").click()
    expect(alert).to_be_hidden()
    expect(page.get_by_role("button", name="Choose a photo")).to_be_focused()


def test_of_several_photos_the_one_that_is_meant_is_named(visit: Visit) -> None:
    page = visit()
    good = named("good.jpg", sample("hopper"), "image/jpeg")
    clip = b"\0\0\0\x18ftypisom\0\0\0\0isomavc1" + bytes(64)
    put(page, "source", good, named("ours.mp4", clip, "video/mp4"))
    alert = page.get_by_role("alert")
    expect(alert.locator("strong")).to_contain_text(": ours.mp4")
    expect(alert).to_contain_text("is a video")
    expect(alert).not_to_contain_text("though")
    expect(page.locator("#source-note")).to_have_text("ours.mp4 cannot be used.")
    page.get_by_role("button", name="Remove ours.mp4").click()
    empty = png(Image.new("RGB", (64, 64)))
    put(page, "source", named("sky.png", empty, "image/png"))
    expect(page.locator("#source-note")).to_have_text("sky.png shows no face.")
    expect(alert).to_be_hidden()


def test_a_refused_swap_takes_the_focus_to_the_reason(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    page.get_by_text("Options").click()
    page.get_by_label("Quality").fill("101")
    page.locator("#swap").click()
    alert = page.get_by_role("alert")
    expect(alert).to_be_focused()
    expect(alert).to_contain_text("from 1 to 100")
    page.get_by_label("Quality").fill("90")
    swap(page)
    expect(alert).to_be_hidden()


def test_a_lost_network_is_said_in_words(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    page.context.set_offline(True)
    page.locator("#swap").click()
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    page.context.set_offline(False)
    swap(page)


def test_an_answer_of_a_proxy_is_said_in_words(visit: Visit) -> None:
    page = visit()
    page.route("**/v1/faces", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    page.locator("#target [data-sample=collins]").click()
    expect(page.get_by_role("alert")).to_contain_text("status 502")


def test_a_swap_can_be_cancelled_and_asked_for_again(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    page.route("**/v1/swap", lambda route: None)
    with page.expect_event("requestfailed") as gone:
        page.locator("#swap").click()
        page.get_by_role("button", name="Cancel").press("Enter")
    assert gone.value.failure == "net::ERR_ABORTED"
    expect(page.locator("#reason")).to_have_text("Cancelled.")
    expect(page.locator("#swap")).to_be_focused()
    expect(page.locator("#cancel")).to_be_hidden()
    page.unroute("**/v1/swap")
    swap(page)


def test_a_new_swap_ends_the_former(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    page.route("**/v1/swap", lambda route: None, times=1)
    with page.expect_request("**/v1/swap"):
        page.locator("#swap").click()
    with page.expect_event("requestfailed") as gone:
        page.locator("#swap").click()
    assert gone.value.url.endswith("/v1/swap")
    await_result(page)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_every_warning_has_words(visit: Visit) -> None:
    page = visit()
    script = """async (codes) => {
      const { warning } = await import("/page/words.js");
      return codes.filter((code) => warning(code) === code);
    }"""
    assert page.evaluate(script, [str(warning) for warning in QualityWarning]) == []
