"""Where things are: on a phone, on a small window, on a wide one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.function.page.helpers import await_faces, named, png, put, stage_samples, swap

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.function.page.conftest import Visit

PHONE = {"width": 390, "height": 844}
_LABELS = """faces => faces.map((face) => {
  const { x, y, width, height } = face.getBoundingClientRect();
  const label = getComputedStyle(face, "::after");
  const [w, h, top] = [label.width, label.height, label.top].map(parseFloat);
  const middle = x + width / 2;
  return {
    head: [x, y - height / 3, x + width, y + height - 3],
    label: [middle - w / 2, y + top + 2, middle + w / 2, y + top + h],
  };
})"""


@pytest.mark.parametrize("width", [810, 880, 1000, 1440])
def test_both_stages_and_all_that_goes_with_them_are_on_one_line(visit: Visit, width: int) -> None:
    page = visit(viewport={"width": width, "height": 900})
    for part in ("h2", ".soft", ".stage", ".note", ".tools"):
        tops = [_box(page.locator(f"#{zone} > {part}"))["y"] for zone in ("source", "target")]
        assert tops[0] == pytest.approx(tops[1], abs=0.5), part
    stages = [_box(page.locator(f"#{zone} .stage")) for zone in ("source", "target")]
    assert stages[0]["height"] == pytest.approx(stages[1]["height"], abs=0.5)
    page.get_by_text("Options").click()
    assert _box(page.locator("#source .stage")) == stages[0]


def test_on_a_phone_the_button_is_always_in_reach_and_hides_nothing_that_has_the_focus(
    visit: Visit,
) -> None:
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    button = page.locator("#swap")
    expect(button).to_be_in_viewport(ratio=1)
    stage_samples(page)
    expect(button).to_be_in_viewport(ratio=1)
    page.mouse.wheel(0, 300)
    expect(button).to_be_in_viewport(ratio=1)
    bar = page.locator(".go")
    for control in page.locator("#target button:visible:enabled").all():
        control.focus()
        assert _box(control)["y"] + _box(control)["height"] <= _box(bar)["y"] + 1
    swap(page)
    expect(page.locator(".compare")).to_be_in_viewport()


def test_labels_of_faces_cover_no_head(visit: Visit, photos: Path) -> None:
    page = visit(viewport={"width": 1000, "height": 900})
    page.locator("#source [data-sample=hopper]").click()
    put(page, "target", named("crowd.png", png(_crowd(photos)), "image/png"))
    await_faces(page.locator("#target"), 4)
    page.locator("#target .face").first.hover()
    boxes: list[dict[str, Any]] = page.locator("#target .face").evaluate_all(_LABELS)
    for mine in boxes:
        for other in boxes:
            assert not _overlap(mine["label"], other["head"])
    numbers = page.locator("#target .face").evaluate_all(
        'faces => faces.map((face) => getComputedStyle(face, "::after").content)'
    )
    assert numbers == ['"1"', '"2"', '"3"', '"4"']


def test_the_faces_of_a_photo_without_a_preview_are_chosen_in_a_row(
    visit: Visit, photos: Path
) -> None:
    pytest.importorskip("pillow_heif").register_heif_opener()
    page = visit()
    file = photos.parent / "unshown.heic"  # only its name
    page.locator("#source [data-sample=hopper]").click()
    put(page, "target", named(file.name, _heic(_crowd(photos)), "image/heic"))
    words = page.get_by_text("No preview of this kind of file")
    await_faces(page.locator("#target"), 4)
    expect(words).to_be_visible()
    boxes = [_box(face) for face in page.locator("#target .face").all()]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[0]["y"] > _box(words)["y"] + _box(words)["height"]
    page.get_by_role("button", name="Face 2 of 4").click()
    expect(page.locator("#target-note")).to_have_text("4 faces, 3 selected")


@pytest.mark.parametrize(
    ("lefts", "shown"),
    [([30, 60], 27), ([0, 40], 37), ([2], 15), ([8], 18), ([80], 85), ([90, 70], 85), ([16], 26)],
)
def test_the_divider_begins_where_before_and_after_are_seen(
    visit: Visit, lefts: list[int], shown: int
) -> None:
    page = visit()
    stage_samples(page)

    def move(route: Any) -> None:
        answer = route.fetch()
        told = answer.json()
        told["faces"] = [
            told["faces"][0]
            | {"box": {"left": at * 5.12, "right": (at + 20) * 5.12, "top": 9, "bottom": 99}}
            for at in lefts
        ]
        route.fulfill(response=answer, json=told)

    page.route("**/v1/swap", move)
    swap(page)
    assert float(page.get_by_role("slider").input_value()) == pytest.approx(shown, abs=0.5)


def _box(element: Locator) -> dict[str, float]:
    box = element.bounding_box()
    assert box is not None
    return dict(box)


def _overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _crowd(photos: Path) -> Image.Image:
    """Two people, each twice, in two rows."""
    crowd = Image.new("RGB", (620, 700), (90, 110, 120))
    hopper = Image.open(photos / "grace_hopper.jpg").convert("RGB").resize((300, 366))
    collins = Image.open(photos / "astronaut.png").convert("RGB").crop((90, 0, 390, 366))
    for at, person in enumerate((hopper, collins, hopper, collins)):
        part = person.crop((50, 10, 250, 320))
        crowd.paste(part, (150 * at, 0 if at % 2 else 340))
    return crowd


def _heic(image: Image.Image) -> bytes:
    from io import BytesIO

    out = BytesIO()
    image.save(out, "HEIF")
    return out.getvalue()
