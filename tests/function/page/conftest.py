"""A real browser on the real page. Every visit also watches what the page may never do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page

    from tests.running import Server

_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_WATCH = """
globalThis.objectUrls = new Set();
const { createObjectURL, revokeObjectURL } = URL;
URL.createObjectURL = (blob) => {
  const url = createObjectURL.call(URL, blob);
  objectUrls.add(url);
  return url;
};
URL.revokeObjectURL = (url) => (objectUrls.delete(url), revokeObjectURL.call(URL, url));
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
"""


class Visit(Protocol):
    """Opens the page: `before` prepares it (routes), the rest are options of the context."""

    def __call__(self, before: Callable[[Page], Any] = ..., **options: Any) -> Page: ...


@pytest.fixture(scope="module")
def browser(needs: Callable[[str], str]) -> Iterator[Browser]:
    """Chromium. One a module: while it is open, no other event loop can run in this thread."""
    path = needs("chromium")
    expect.set_options(timeout=20_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """Opens the page in contexts of their own; at the end, nothing forbidden may have happened.

    Forbidden are: a script error, anything on the console's error level (a CSP violation is) but
    the browser's own note of a failed request, and a request to anywhere but the server.
    """
    faults: list[str] = []
    contexts = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            faults.append(message.text)

    def open_page(before: Callable[[Page], Any] = lambda _: None, **options: Any) -> Page:
        context = browser.new_context(base_url=server.url, **options)
        contexts.append(context)
        context.add_init_script(_WATCH)
        context.on("console", note)
        context.on("weberror", lambda error: faults.append(str(error.error)))
        context.on("request", lambda request: urls.append(request.url))
        page = context.new_page()
        before(page)
        page.goto("/")
        return page

    urls: list[str] = []
    yield open_page
    for context in contexts:
        context.close()
    assert not faults
    own = (f"{server.url}/", "blob:", "data:")
    assert [url for url in urls if not url.startswith(own)] == []
