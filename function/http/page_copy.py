"""The page as files for another place, e.g. a CDN: it is there while every replica sleeps.

All but `index.html` is in a folder that is named by its content, so it may be kept for ever.
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = ("page", "samples")
"""Of the package, with what the page consists of."""

_FIRST = '<meta charset="utf-8">'
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")


def policy(server: str = "") -> str:
    """What the page may do (CSP): nothing from elsewhere, no inline script or style.

    Args:
        server: the origin of the server, where the page is not its own.
    """
    called = f"'self' {server}".strip()
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:;"
        f" media-src 'self' blob:; connect-src {called}; base-uri 'none';"
        " form-action 'none'"
    )


def page_files() -> dict[str, bytes]:
    """The files of the page and its samples, named like "page/app.js"."""
    return {
        f"{folder}/{each.name}": each.read_bytes()
        for folder in FOLDERS
        for each in (files("function") / folder).iterdir()
        if each.is_file()
    }


def copied(server: str) -> dict[str, bytes]:
    """The files of a copy of the page, by their paths in it.

    Args:
        server: where the API is: the scheme, the host and perhaps a port.

    Raises:
        ValueError: that is no origin.
    """
    server = _origin(server)
    parts = page_files()
    index = parts.pop("page/index.html").decode()
    digest = hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]
    meta = {
        'http-equiv="Content-Security-Policy"': policy(server),
        'name="referrer"': "no-referrer",
        'name="ember-api"': server,
    }
    head = "".join(f'\n  <meta {name} content="{value}">' for name, value in meta.items())
    index = index.replace(_FIRST, _FIRST + head)
    index = re.sub(f'"/({"|".join(FOLDERS)})/', rf'"ember-{digest}/\1/', index)
    index = index.replace('="/', f'="{server}/')
    return {f"ember-{digest}/{name}": data for name, data in parts.items()} | {
        "index.html": index.encode()
    }


def copy_page(folder: Path, server: str) -> list[Path]:
    """Write a copy of the page; `index.html` comes last, when all that it needs is there.

    Raises:
        ValueError: `server` is no origin.
        OSError: a file cannot be written.
    """
    written = []
    for name, data in copied(server).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)
    return written


def _origin(text: str) -> str:
    parts = urlsplit(text.rstrip("/"))
    if (
        parts.scheme not in {"http", "https"}
        or not _HOST.fullmatch(parts.netloc)
        or parts.geturl() != f"{parts.scheme}://{parts.netloc}"
    ):
        raise ValueError(f"{text!r} is not like https://ember.example.")
    return parts.geturl().lower()
