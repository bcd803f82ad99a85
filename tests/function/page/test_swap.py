"""From photos to a result: every way in, and what comes out."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from function.service.service import sample
from tests.function.page.helpers import (
    await_faces,
    download,
    named,
    png,
    put,
    stage_samples,
    swap,
    transfer,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.function.page.conftest import Visit


def test_two_chosen_files_become_a_photo_that_differs_only_in_the_face(
    visit: Visit, photos: Path
) -> None:
    page = visit()
    for button, name in (
        ("Choose a face", "grace_hopper.jpg"),
        ("Choose a photo", "astronaut.png"),
    ):
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name=button).click()
        chooser.value.set_files(photos / name)
    await_faces(page.locator("#target"), 1)
    answer = swap(page)

    result, name = download(page)
    assert name == "astronaut-ember.png"
    assert result.format == "PNG"
    assert _differs_only_inside(photos / "astronaut.png", result, answer["faces"])


def test_photos_can_be_dropped(visit: Visit, photos: Path) -> None:
    page = visit()
    for zone, name in (("source", "grace_hopper.jpg"), ("target", "astronaut.png")):
        data = transfer(page, (photos / name).read_bytes(), name, "image/*")
        stage = page.locator(f"#{zone} .stage")
        stage.dispatch_event("dragover", {"dataTransfer": data})
        expect(page.locator(f"#{zone}")).to_have_class(re.compile("over"))
        stage.dispatch_event("drop", {"dataTransfer": data})
        expect(page.locator(f"#{zone}")).not_to_have_class(re.compile("over"))
        await_faces(page.locator(f"#{zone}"), 1)
    swap(page)


def test_a_drop_beside_the_zones_fills_an_empty_one_and_does_not_leave_the_page(
    visit: Visit,
) -> None:
    page = visit()
    data = transfer(page, sample("hopper"), "hopper.jpg", "image/jpeg")
    page.locator("#swapping h1").dispatch_event("drop", {"dataTransfer": data})
    await_faces(page.locator("#source"), 1)


@pytest.mark.parametrize(("path", "taken"), [("", False), ("/samples/hopper.jpg", True)])
def test_a_dropped_link_is_a_photo_of_the_page_itself_or_is_explained(
    visit: Visit, path: str, taken: bool
) -> None:
    page = visit()
    here = page.evaluate("location.origin")
    link = f"{here}{path}" if taken else "https://elsewhere.example/photo.jpg"
    data = page.evaluate_handle(
        """(link) => {
          const data = new DataTransfer();
          data.setData("text/uri-list", link);
          return data;
        }""",
        link,
    )
    stage = page.locator("#target .stage")
    stage.dispatch_event("dragover", {"dataTransfer": data})
    expect(page.locator("#target")).to_have_class(re.compile("over"))
    stage.dispatch_event("drop", {"dataTransfer": data})
    if taken:
        await_faces(page.locator("#target"), 1)
        expect(page.get_by_role("img", name="hopper.jpg")).to_be_visible()
    else:
        expect(page.get_by_role("alert")).to_contain_text("That was a link")
        expect(page.get_by_role("alert")).to_contain_text("Copy the photo there")
        stage_samples(page)
        expect(page.get_by_role("alert")).to_be_hidden()


def test_control_v_fills_the_first_empty_zone_or_the_focused_one(
    visit: Visit, photos: Path
) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"])

    def copy(image: Image.Image) -> None:
        page.evaluate(
            """async (data) => navigator.clipboard.write([new ClipboardItem({ "image/png":
            new Blob([await data.arrayBuffer?.() ?? data.files[0]], { type: "image/png" }) })])""",
            transfer(page, png(image), "image.png", "image/png"),
        )

    copy(Image.open(photos / "grace_hopper.jpg"))
    page.keyboard.press("Control+V")
    await_faces(page.locator("#source"), 1)
    page.keyboard.press("Control+V")
    await_faces(page.locator("#target"), 1)
    page.get_by_role("button", name="Replace").focus()
    copy(Image.new("RGB", (64, 64)))
    page.keyboard.press("Control+V")
    expect(page.locator("#target-note")).to_have_text("This photo shows no face.")
    await_faces(page.locator("#source"), 1)


def test_the_samples_are_swapped_and_shown_with_likeness_times_and_a_divider(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    answer = swap(page)

    identity = answer["faces"][0]["identity"]
    numbers = f"Face 1: {identity['before']:.2f} → {identity['after']:.2f}"
    expect(page.locator("#result .faces li")).to_have_text(numbers)
    expect(page.locator("#result .faces canvas")).to_have_count(2)

    stages = list(dict.fromkeys(span["stage"] for span in answer["timings"]))
    assert page.locator("#result th").all_inner_texts() == stages
    expect(page.locator("#result .track i")).to_have_count(len(answer["timings"]))
    expect(page.locator("caption")).to_contain_text("in the server")

    compare = page.locator(".compare")
    width = compare.evaluate("node => node.clientWidth")
    compare.click(position={"x": 0.75 * width, "y": 20})
    expect(page.get_by_role("slider")).to_have_value("75")
    clip = page.locator(".compare .after").evaluate("image => getComputedStyle(image).clipPath")
    assert clip == "inset(0px 0px 0px 75%)"


def test_warnings_are_sentences_and_unknown_ones_are_shown_as_they_are(visit: Visit) -> None:
    page = visit()
    stage_samples(page)

    def embellish(route: Any) -> None:
        answer = route.fetch()
        told = answer.json()
        told["faces"][0]["warnings"] = ["occluded"]
        told["warnings"] = ["occluded", "first_frame", "quite_new"]
        route.fulfill(response=answer, json=told)

    page.route("**/v1/swap", embellish)
    swap(page)
    expect(page.locator(".warnings li")).to_have_text(
        [re.compile("painted over"), re.compile("only the first was used"), "quite_new"]
    )


def test_only_selected_faces_are_swapped(visit: Visit, photos: Path) -> None:
    page = visit()
    group = _side_by_side(photos)
    page.locator("#source [data-sample=hopper]").click()
    put(page, "target", named("two.png", png(group), "image/png"))
    first = page.get_by_role("button", name="Face 1 of 2")
    second = page.get_by_role("button", name="Face 2 of 2")
    expect(first).to_have_attribute("aria-pressed", "true")
    first.click()
    expect(first).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#target-note")).to_have_text("2 faces, 1 selected")

    answer = swap(page)
    assert [face["index"] for face in answer["faces"]] == [1]
    result, _ = download(page)
    assert _differs_only_inside(group, result, answer["faces"])

    second.press("Space")
    expect(page.locator("#reason")).to_have_text("Select at least one face.")
    expect(page.get_by_role("button", name="Swap")).to_have_attribute("aria-disabled", "true")


def test_face_boxes_lie_on_the_faces_and_move_nothing(visit: Visit) -> None:
    page = visit(viewport={"width": 1280, "height": 1600})
    places = ["#swapping h1", "#source .stage", "#target .stage", "#swap", "footer"]
    empty = [page.locator(place).bounding_box() for place in places]
    with page.expect_response("**/v1/faces") as answer:
        page.locator("#target [data-sample=collins]").click()
    await_faces(page.locator("#target"), 1)
    assert [page.locator(place).bounding_box() for place in places] == empty

    told = answer.value.json()
    frame = page.locator("#target .frame").bounding_box()
    drawn = page.locator("#target .face").bounding_box()
    assert frame
    assert drawn
    scale = frame["width"] / told["width"]
    box = told["faces"][0]["box"]
    assert drawn["x"] - frame["x"] == pytest.approx(scale * box["left"], abs=1)
    assert drawn["y"] - frame["y"] == pytest.approx(scale * box["top"], abs=1)
    assert drawn["width"] == pytest.approx(scale * (box["right"] - box["left"]), abs=1)
    assert drawn["height"] == pytest.approx(scale * (box["bottom"] - box["top"]), abs=1)


def test_several_source_photos_are_sent_together(visit: Visit, photos: Path) -> None:
    page = visit()
    put(page, "source", photos / "grace_hopper.jpg", photos / "grace_hopper.jpg")
    page.locator("#target [data-sample=collins]").click()
    expect(page.locator("#source-note")).to_have_text("2 photos, 2 faces")
    await_faces(page.locator("#target"), 1)
    answer = swap(page)
    assert [span["stage"] for span in answer["timings"]].count("decode") == 3
    page.get_by_role("button", name="Remove grace_hopper.jpg").first.click()
    expect(page.locator("#source-note")).to_have_text("1 photo, 1 face")


def test_the_download_has_the_chosen_format(visit: Visit) -> None:
    page = visit()
    stage_samples(page)
    page.get_by_text("Options").click()
    page.get_by_label("Format").select_option("WebP")
    page.get_by_label("Quality").fill("60")
    swap(page)
    result, name = download(page)
    assert (result.format, name, result.size) == ("WEBP", "collins-ember.webp", (512, 512))


def test_a_photo_that_the_browser_cannot_show_is_swapped_all_the_same(
    visit: Visit, photos: Path
) -> None:
    heif = pytest.importorskip("pillow_heif")
    file = io.BytesIO()
    heif.from_pillow(Image.open(photos / "astronaut.png").convert("RGB")).save(file)
    page = visit()
    page.locator("#source [data-sample=hopper]").click()
    put(page, "target", named("photo.heic", file.getvalue(), "image/heic"))
    expect(page.get_by_text("No preview of this kind of file")).to_be_visible()
    await_faces(page.locator("#target"), 1)
    swap(page)
    expect(page.locator(".compare .after")).to_be_visible()
    expect(page.locator(".compare .before")).to_be_hidden()
    expect(page.get_by_role("slider")).to_be_disabled()


def test_photos_that_are_replaced_are_freed(visit: Visit) -> None:
    page = visit()
    for _ in range(3):
        stage_samples(page)
        page.get_by_role("button", name="Remove hopper.jpg").click()
    stage_samples(page)
    swap(page)
    swap(page)
    assert page.evaluate("objectUrls.size") == 4  # a source, a target, before and after


def _side_by_side(photos: Path) -> Image.Image:
    left, right = Image.open(photos / "grace_hopper.jpg"), Image.open(photos / "astronaut.png")
    group = Image.new("RGB", (left.width + right.width, max(left.height, right.height)))
    group.paste(left, (0, 0))
    group.paste(right, (left.width, 0))
    return group


def _differs_only_inside(
    before: Path | Image.Image, after: Image.Image, faces: list[dict[str, Any]]
) -> bool:
    """Whether each face's box differs clearly and everything else is bit-identical."""
    original = before if isinstance(before, Image.Image) else Image.open(before)
    change = np.abs(_pixels(original) - _pixels(after)).max(axis=2)
    outside = np.ones(change.shape, bool)
    clear = True
    for face in faces:
        box = face["box"]
        area = np.s_[box["top"] : box["bottom"], box["left"] : box["right"]]
        outside[area] = False
        clear &= bool(np.mean(change[area] > 8) > 0.2)
    return clear and not change[outside].any()


def _pixels(image: Image.Image) -> NDArray[np.int16]:
    return np.asarray(image.convert("RGB"), np.int16)
