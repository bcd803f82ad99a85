"""What several tests of the page do."""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING, Any

from PIL import Image
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Download, JSHandle, Locator, Page, Route


def stage_samples(page: Page) -> None:
    """Hopper's face for Collins's photo, with all faces found."""
    page.locator("#source [data-sample=hopper]").click()
    page.locator("#target [data-sample=collins]").click()
    await_faces(page.locator("#source"), 1)
    await_faces(page.locator("#target"), 1)


def await_faces(zone: Locator, count: int) -> None:
    """Wait until a zone shows that many faces."""
    expect(zone.locator(".face")).to_have_count(count)


def put(page: Page, zone: str, *files: Path | dict[str, Any]) -> None:
    """Choose files for a zone."""
    page.locator(f"#{zone} input[type=file]").set_input_files(list(files))


def swap(page: Page) -> dict[str, Any]:
    """Press the button, wait for the result to be shown, and return the server's answer."""
    with page.expect_response("**/v1/swap") as answer:
        page.locator("#swap").click()
    await_result(page)
    return answer.value.json()


def await_result(page: Page) -> None:
    """Wait until a result is shown."""
    expect(page.locator("#reason")).to_have_text(re.compile("^Done in "))
    expect(page.get_by_role("heading", name="The result")).to_be_visible()


def download(page: Page) -> tuple[Image.Image, str]:
    """The result as the page's button saves it, and the name it gives the file."""
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    file: Download = saved.value
    return Image.open(io.BytesIO(file.path().read_bytes())), file.suggested_filename


def transfer(page: Page, data: bytes, name: str, type: str) -> JSHandle:  # noqa: A002
    """A DataTransfer with one file, as a drag or a paste brings it."""
    script = """([base64, name, type]) => {
      const data = new DataTransfer();
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      data.items.add(new File([bytes], name, { type }));
      return data;
    }"""
    return page.evaluate_handle(script, [base64.b64encode(data).decode(), name, type])


def sent(page: Page, path: str) -> list[str]:
    """The forms that are sent to an address from now on."""
    forms: list[str] = []

    def note(route: Route) -> None:
        forms.append((route.request.post_data_buffer or b"").decode("latin-1"))
        route.continue_()

    page.route(f"**{path}", note)
    return forms


def state(page: Page, name: str) -> None:
    """State consent where it is asked for."""
    page.get_by_label("Who states it").fill(name)
    page.get_by_role("checkbox", name="agrees").check()
    page.get_by_role("button", name="State it").click()


def named(name: str, data: bytes, media_type: str) -> dict[str, Any]:
    """A file that exists only in memory."""
    return {"name": name, "mimeType": media_type, "buffer": data}


def png(image: Image.Image) -> bytes:
    """The image as a PNG file."""
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
