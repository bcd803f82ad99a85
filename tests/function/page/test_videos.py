"""Videos on the page: dropped like photos, done as jobs, played where they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.function.page.helpers import named, put

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.function.page.conftest import Visit

pytest.importorskip("av")

from tests.function.video.films import animation, film, scene


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(scope="module")
def clip(folder: Path) -> Path:
    """Half a second that every Chromium plays."""
    return film(folder / "clip.webm", scene(12), codec="libvpx-vp9", sound="libopus")


def test_a_video_is_dropped_like_a_photo_and_plays_when_it_is_done(
    visit: Visit, clip: Path
) -> None:
    page = visit()
    parts: list[int] = []
    page.on("response", lambda answer: "/results/" in answer.url and parts.append(answer.status))
    forms = _swap(page, clip)
    expect(page.locator("#target-note")).to_have_text(
        "A video becomes a job. All faces in it are replaced."
    )
    assert page.locator("#target video").evaluate("film => film.videoWidth") == 384
    row = page.locator("#jobs li")
    expect(row.get_by_role("status")).to_have_text("Done.", timeout=60_000)
    expect(page.locator("#reason")).to_have_text("It is a job now.")
    assert forms == ["PUT"]

    player = row.get_by_label("clip-ember.webm", exact=True)
    shown = player.evaluate(
        """async (film) => {
          film.muted = true;
          await film.play();
          film.pause();
          film.currentTime = 0.3;
          await new Promise((resolve) => (film.onseeked = resolve));
          return [film.currentTime, film.videoWidth, film.videoHeight];
        }"""
    )
    assert shown == [0.3, 384, 216]
    assert 206 in parts
    assert page.evaluate("objectUrls.size") == 2  # of the source and the target: it is streamed
    with page.expect_download() as saved:
        row.get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "clip-ember.webm"
    assert saved.value.path().read_bytes()[:4] == b"\x1a\x45\xdf\xa3"
    row.get_by_role("button", name="Delete").click()
    expect(page.locator("#jobs")).to_be_hidden()


def test_the_frames_that_are_done_are_counted_and_the_work_can_be_stopped(
    visit: Visit, clip: Path
) -> None:
    told: dict[str, Any] = {}

    def stay(route: Any) -> None:
        """Tell of the job as it would be in the midst of it."""
        if route.request.method == "PUT":
            told.update(route.fetch().json())
        state = "cancelled" if route.request.method == "DELETE" else "running"
        frames = {"done": 310, "total": 750}
        items = [{"state": state, "frames": frames, "result": None, "problem": None}]
        route.fulfill(json=told | {"state": state, "items": items})

    page = visit(lambda page: page.route("**/v1/jobs/*", stay))
    _swap(page, clip)
    row = page.locator("#jobs li")
    expect(row).to_contain_text("310 of 750 frames")
    bar = row.get_by_role("progressbar")
    assert bar.evaluate("bar => [bar.value, bar.max]") == [310, 750]
    row.get_by_role("button", name="Cancel").click()
    expect(row.get_by_role("status")).to_have_text("Cancelled.")
    expect(row).not_to_contain_text("frames")


def test_a_video_that_the_browser_cannot_show_is_done_all_the_same(
    visit: Visit, folder: Path
) -> None:
    page = visit()
    path = film(folder / "old.mkv", scene(6), codec="mpeg4", sound=None)
    _swap(page, path)
    expect(page.get_by_text("No preview of this kind of file")).to_be_visible()
    row = page.locator("#jobs li")
    expect(row.get_by_role("status")).to_have_text("Done.", timeout=60_000)
    name = row.get_by_role("link", name="Download").get_attribute("download")
    assert name == "old-ember.mkv"


def test_a_long_animation_becomes_a_job_by_itself_and_a_short_one_moves_in_the_result(
    visit: Visit, folder: Path
) -> None:
    page = visit()
    told = {"code": "needs_job", "title": "It takes too long", "detail": "", "hint": ""}
    page.route("**/v1/swap", lambda route: route.fulfill(status=422, json=told), times=1)
    path = animation(folder / "wave.gif", scene(4), duration=80, loop=0)
    forms = _swap(page, path)
    row = page.locator("#jobs li")
    expect(row.get_by_role("status")).to_have_text("Done.", timeout=60_000)
    assert forms == ["POST", "PUT"]
    expect(row.get_by_role("link", name="Download")).to_have_attribute("download", "wave-ember.gif")
    expect(page.get_by_role("alert")).to_be_hidden()
    with page.expect_response("**/v1/swap") as answer:
        page.locator("#swap").click()
    assert answer.value.json()["image"]["media_type"] == "image/gif"
    expect(page.locator("#reason")).to_have_text(re.compile("^Done in "))


def test_a_video_is_no_source(visit: Visit, clip: Path) -> None:
    page = visit()
    put(page, "source", named("clip.webm", clip.read_bytes(), "video/webm"))
    expect(page.get_by_role("alert")).to_contain_text(": clip.webm")
    expect(page.locator("#source-note")).to_have_text("This photo cannot be used.")


def _swap(page: Page, path: Path) -> list[str]:
    """Put a sample's face onto a clip; the methods of the calls that make it."""
    methods: list[str] = []

    def note(request: Any) -> None:
        if request.method in {"POST", "PUT"} and "/v1/faces" not in request.url:
            methods.append(request.method)

    page.on("request", note)
    page.locator("#source [data-sample=hopper]").click()
    put(page, "target", path)
    expect(page.locator("#source .face")).to_have_count(1)
    page.locator("#swap").click()
    expect(page.locator("#jobs li")).to_be_visible()
    return methods
