"""What is always the same: the page, the sample photos and the OpenAPI document.

They are a few small files, kept in memory and found by exact name only.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from function.http import ranges
from function.http.page_copy import page_files, policy

if TYPE_CHECKING:
    from aiohttp.web import Request, Response

CSP = f"{policy()}; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file as it is served."""

    body: bytes
    media_type: str
    etag: str


class StaticFiles:
    """Serves the folders `page` and `samples` of the package, and the document that is beside."""

    def __init__(self) -> None:
        self._files = {f"/{name}": _file(name, data) for name, data in page_files().items()}
        document = files("function") / "http" / "openapi.json"
        self._files["/openapi.json"] = _file(document.name, document.read_bytes())

    async def index(self, request: Request) -> Response:
        """The page."""
        return self._serve(request, "/page/index.html")

    async def named(self, request: Request) -> Response:
        """A file of the page, a sample photo, or the OpenAPI document."""
        return self._serve(request, request.path)

    def _serve(self, request: Request, path: str) -> Response:
        if file := self._files.get(path):
            return _answer(request, file)
        raise web.HTTPNotFound


def _answer(request: Request, file: StaticFile) -> Response:
    headers = {
        hdrs.ETAG: f'"{file.etag}"',
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": CSP,
        "Referrer-Policy": "no-referrer",
    }
    if any(tag.value in {file.etag, "*"} for tag in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    headers |= {hdrs.CONTENT_TYPE: file.media_type, hdrs.ACCEPT_RANGES: "bytes"}
    part = ranges.wanted(request.headers, len(file.body), headers[hdrs.ETAG])
    if part is None:
        return web.Response(body=file.body, headers=headers)
    body = file.body[part.first : part.last + 1]
    return web.Response(body=body, status=206, headers=headers | part.headers)


def _file(name: str, body: bytes) -> StaticFile:
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if media_type.startswith("text/") else ""
    return StaticFile(body, media_type + charset, hashlib.sha256(body).hexdigest()[:16])
