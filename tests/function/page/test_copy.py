"""A copy of the page on a plain server of files: it is there while every replica sleeps."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from function.command import COMMANDS
from function.http.page_copy import copied, copy_page
from tests.function.page.helpers import await_result
from tests.running import running, unused_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

_RECORD = """
globalThis.phases = [];
document.addEventListener("DOMContentLoaded", () => {
  const panel = document.getElementById("replica");
  new MutationObserver(() => phases.push(panel.dataset.phase))
    .observe(panel, { attributeFilter: ["data-phase"] });
});
"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def files_of(folder: Path) -> Iterator[str]:
    """The origin of a server of a folder's files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_photos_are_chosen_and_a_swap_is_asked_for_while_the_server_comes_up(
    browser: Browser, tmp_path: Path
) -> None:
    port = unused_port()
    api = f"http://127.0.0.1:{port}"
    copy_page(tmp_path, api)
    faults: list[str] = []
    urls: list[str] = []
    with files_of(tmp_path) as here:
        page = browser.new_page()
        page.add_init_script(_RECORD)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: urls.append(request.url))
        page.goto(here)
        chip = page.locator("#phase")
        expect(chip).to_have_text("cold, waking…")
        page.locator("#source [data-sample=hopper]").click()
        page.locator("#target [data-sample=collins]").click()
        expect(page.get_by_role("img", name="collins.jpg")).to_be_visible()
        expect(page.locator("#target-note")).to_have_text("Waiting for the replica…")
        page.locator("#swap").click()
        expect(page.locator("#reason")).to_have_text(re.compile("starts when it is ready"))

        environ = {"EMBER_CORS_ORIGINS": here, "EMBER_WARMUP_REQUESTS": "12"}
        with running(ready=False, EMBER_PORT=str(port), **environ):
            await_result(page)
            expect(chip).to_have_text("ready · CPU")
            phases = page.evaluate("phases")
            assert [phases[0], phases[-1]] == ["cold", "ready"]
            assert {"loading", "warming"} & set(phases)
            assert phases == sorted(phases, key=["cold", *_STEPS].index)
            chip.click()
            expect(page.locator("#replica")).to_contain_text("This page has waited")
            names = page.locator("#replica th").all_inner_texts()
            assert {"interpreter", "loading", "warming"} <= set(names)
            page.get_by_text("Options").click()
            page.get_by_label("As a job").check()
            page.locator("#swap").click()
            job = page.locator("#jobs li")
            expect(job.get_by_role("status")).to_have_text("Done.")
            expect(job.get_by_role("link", name="Download")).to_be_visible()
        page.close()
    assert faults == []
    assert {url.split("/v1/")[0] for url in urls if url.startswith(f"{api}/v1/")} == {api}
    assert [url for url in urls if not url.startswith((f"{here}/", f"{api}/", "blob:"))] == []


_STEPS = ["starting", "fetching", "loading", "warming", "ready"]


def test_a_copy_names_its_files_by_their_content_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    *others, index = copy_page(tmp_path, "https://Ember.example:8443/")
    assert index == tmp_path / "index.html"
    (folder,) = {path.relative_to(tmp_path).parts[0] for path in others}
    assert re.fullmatch("ember-[0-9a-f]{16}", folder)
    text = index.read_text()
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    for link in links:
        if link.startswith("https:"):
            assert link.startswith("https://ember.example:8443/")
        elif not link.startswith("#"):
            assert (tmp_path / link).is_file(), link
    assert "connect-src 'self' https://ember.example:8443;" in text
    assert "frame-ancestors" not in text  # browsers ignore it there, and complain
    again = copied("https://ember.example:8443")
    assert again.keys() == {str(path.relative_to(tmp_path)) for path in (*others, index)}


@pytest.mark.parametrize(
    "url",
    ["", "ember.example", "ftp://ember.example", "https://", "https://ember.example/api",
     "https://user@ember.example", "https://ember.example?x", 'https://"onload="', "https://a;b",
     "https://ember.example#x", "https://a b"],
)  # fmt: skip
def test_a_server_is_named_by_its_origin(url: str) -> None:
    with pytest.raises(ValueError, match="is not like"):
        copied(url)


def test_the_command_says_what_it_has_written_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from function.cli.lazy import run

    def ember(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["ember", *words])
        code = run(COMMANDS)
        return code, *capsys.readouterr()

    done = ember("page", "export", str(tmp_path / "x"), "--api", "https://ember.example")
    assert done == (0, f"{tmp_path / 'x' / 'index.html'}\n", "")
    code, _, said = ember("page", "export", str(tmp_path), "--api", "nowhere")
    assert code == 2
    assert "'nowhere' is not like https://ember.example" in said
