"""Files over HTTP(S), with aiohttp: redirects, ranges, proxies and CAs of the environment."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp

from warmup.objects.errors import RefusedError, RestartError, TransientError
from warmup.objects.protocol import Facts
from warmup.objects.urls import exact
from warmup.retry import PASSING, retry_after

if TYPE_CHECKING:
    from warmup.objects.protocol import Sink


def session(patience_s: float) -> aiohttp.ClientSession:
    """A session for every `HttpSource`.

    HTTPS_PROXY, HTTP_PROXY, NO_PROXY and ~/.netrc count, and SSL_CERT_FILE and SSL_CERT_DIR do for
    certificates.

    Args:
        patience_s: how long a connection may take to open, and be silent.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=patience_s, sock_read=patience_s)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context()),
        timeout=timeout,
        trust_env=True,
        requote_redirect_url=False,
        auto_decompress=False,
        read_bufsize=1024**2,
        headers={"Accept-Encoding": "identity", "User-Agent": "ember"},
    )


@dataclass(frozen=True, slots=True)
class HttpSource:
    """One `https://` or `http://` URI.

    Attributes:
        uri: the URI.
        session: what brings the bytes.
        headers: go with every request.
        tags: the header that tells versions of the content apart, and what to take without it.
    """

    uri: str
    session: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ("ETag", "Last-Modified")

    async def stat(self) -> Facts:
        """Ask for the first byte: not every server, and no signed URL, answers HEAD."""
        try:
            asked = self.headers | {"Range": "bytes=0-0"}
            async with self.session.get(exact(self.uri), headers=asked) as response:
                tag = self._tag(response)
                if response.status == 416:  # what a range of an empty file is
                    return Facts(0, tag)
                _check(response)
                if response.status == 206:
                    total = response.headers.get("Content-Range", "").rpartition("/")[2]
                    return Facts(int(total) if total.isdecimal() else None, tag, 64)
                return Facts(response.content_length, tag)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(error) from error

    async def read(self, facts: Facts, sink: Sink) -> None:
        """Bring the range that the sink lacks, or the whole file when there are no ranges."""
        headers = dict(self.headers)
        if facts.streams:
            headers["Range"] = f"bytes={sink.at}-{sink.stop - 1}"
            if "ETag" in self.tags and facts.tag and not facts.tag.startswith("W/"):
                headers["If-Range"] = facts.tag
        try:
            async with self.session.get(exact(self.uri), headers=headers) as response:
                if response.status == 416:
                    raise RestartError("it has become shorter")
                _check(response)
                tag = self._tag(response)
                if facts.tag and tag and tag != facts.tag:
                    raise RestartError(f"it has changed: first it was {facts.tag}, now {tag}")
                if facts.streams and response.status != 206:
                    raise RestartError("the server has ceased to answer ranges")
                begins = response.headers.get("Content-Range", "")
                if facts.streams and not begins.startswith(f"bytes {sink.at}-"):
                    raise TransientError(f"the server sent another range: {begins}")
                async for chunk in response.content.iter_any():
                    sink.write(chunk)
                    if sink.full:
                        break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(error) from error

    def _tag(self, response: aiohttp.ClientResponse) -> str:
        return next(filter(None, map(response.headers.get, self.tags)), None) or ""


def _check(response: aiohttp.ClientResponse) -> None:
    if response.status in {200, 206}:
        return
    reason = f"HTTP {response.status} {response.reason}"
    if response.status not in PASSING:
        raise RefusedError(reason)
    raise TransientError(reason, retry_after(response.headers.get("Retry-After", "")))


def _failure(error: Exception) -> Exception:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return RefusedError(f"{error.certificate_error}; SSL_CERT_FILE names further authorities")
    if isinstance(error, (aiohttp.InvalidURL, aiohttp.TooManyRedirects)):
        return RefusedError(f"{type(error).__name__}: {error}")
    return TransientError(str(error) or type(error).__name__)
