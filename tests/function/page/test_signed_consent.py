"""A server that wants consent in a signed token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import expect

from tests.function.page.helpers import sent, stage_samples
from tests.running import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.function.page.conftest import Visit


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("keys") / "consent.pem"
    public = Ed25519PrivateKey.generate().public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    path.write_bytes(public.public_bytes(serialization.Encoding.PEM, form))
    with running(EMBER_CONSENT="signed", EMBER_CONSENT_KEYS=str(path)) as server:
        yield server


def test_a_signed_statement_is_sent_as_it_is_and_asked_for_again_when_it_is_not_good(
    visit: Visit,
) -> None:
    page = visit()
    forms = sent(page, "/v1/swap")
    stage_samples(page)
    page.locator("#swap").click()
    expect(page.get_by_label("Who states it")).to_be_hidden()
    page.get_by_label("Your signed statement").fill(" eyJ.not.good ")
    with page.expect_response("**/v1/swap") as answer:
        page.get_by_role("button", name="State it").click()
    told = answer.value.json()
    assert told["code"] == "consent_required"
    assert 'name="consent"\r\n\r\neyJ.not.good\r\n' in forms[0]
    expect(page.get_by_role("dialog")).to_contain_text(told["detail"])
    page.get_by_role("button", name="Not now").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing has been made of your photos")
    expect(page.locator("#agreed")).to_be_hidden()
