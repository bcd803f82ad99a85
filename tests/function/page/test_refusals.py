"""Refusals are explained kindly, by a server to which an ordinary portrait may be too much."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from function.problems import KINDS
from function.service.service import sample
from tests.function.page.helpers import await_faces, named, png, put
from tests.running import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.function.page.conftest import Visit


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(EMBER_GATE_THRESHOLD="0.1") as server:
        yield server


def mistaken() -> bytes:
    """A portrait that the gate's model is less sure of (0.2) than of the sample itself (0.03)."""
    part = Image.open(io.BytesIO(sample("collins"))).crop((99, 17, 321, 428))
    light = (np.asarray(part, np.float64) / 255) ** 0.61 * (1.05, 0.8, 0.99)
    return png(Image.fromarray((255 * light).clip(0, 255).astype(np.uint8)))


def test_a_refusal_says_what_can_be_done_and_blames_nobody(visit: Visit) -> None:
    page = visit()
    page.locator("#source [data-sample=hopper]").click()
    put(page, "target", named("portrait.png", mistaken(), "image/png"))
    await_faces(page.locator("#target"), 1)
    with page.expect_response("**/v1/swap") as answer:
        page.locator("#swap").click()
    told = answer.value.json()
    assert told["code"] == "refused_content"
    alert = page.get_by_role("alert")
    expect(alert).to_be_focused()
    for text in (told["title"], told["detail"], told["hint"], "It may be a mistake"):
        expect(alert).to_contain_text(text)
    expect(alert).to_contain_text(f"tell whoever runs this server: request {told['request_id']}")
    assert "gentle" in (alert.get_attribute("class") or "")
    expect(page.locator("#reason")).to_have_text("Not swapped.")


def test_every_refusal_has_words(visit: Visit) -> None:
    page = visit()
    script = """async (codes) => {
      const { refusal } = await import("/page/words.js");
      return codes.filter((code) => !refusal(code));
    }"""
    codes = [code for code in KINDS if code.startswith(("refused_", "consent_"))]
    assert codes
    assert page.evaluate(script, codes) == []
