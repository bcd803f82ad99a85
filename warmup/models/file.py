"""A file that is known by its digest, before and after anything has fetched it."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warmup.failures import DamagedError

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 1024
"""How many first bytes tell what a file really is."""


@dataclass(frozen=True, slots=True)
class File:
    """One file that a manifest names.

    Attributes:
        name: what people call it, e.g. "detect" or "detect/small".
        uri: where it comes from, absolute.
        size: bytes.
        sha256: hexadecimal digest.
        path: where it lies; None as long as it is not known to lie anywhere.
    """

    name: str
    uri: str
    size: int
    sha256: str
    path: Path | None = None

    @property
    def source(self) -> str:
        """The URI without what may be secret in it: user, password and query."""
        parts = urlsplit(self.uri)
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=host, query="", fragment="").geturl()

    def verify(self, path: Path) -> os.stat_result:
        """Check size and digest of a copy, so that no damaged file reaches a runtime.

        Returns:
            What the copy was when it was read.

        Raises:
            DamagedError: naming the file, what was expected and what was found.
        """
        try:
            with path.open("rb") as opened:
                found = os.fstat(opened.fileno())
                got: int | str = found.st_size
                if got == self.size:
                    got = hashlib.file_digest(opened, "sha256").hexdigest()
                if got != self.sha256:
                    opened.seek(0)
                    raise self.damaged(path, got, opened.read(HEAD))
        except OSError as error:
            raise DamagedError(f"{self.name}: {path}: {error.strerror}") from error
        return found

    def damaged(self, where: object, got: int | str, head: bytes) -> DamagedError:
        """The error for a wrong copy.

        Args:
            where: its path or its source.
            got: its size, or its digest when the size is right.
            head: its first bytes; they often tell what went wrong.
        """
        if isinstance(got, int):
            facts = f"expected {self.size} bytes, got {got}"
        else:
            facts = f"expected sha256 {self.sha256}, got {got}"
        return DamagedError(f"{self.name}: {where}: {facts}{looks_like(head)}")


def looks_like(head: bytes) -> str:
    """What a file is that should have been a model, by its first bytes; empty if unknown."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        return "; it is empty" if not head else "; it is blank"
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        return "; it is a Git LFS pointer: fetch the object that it points to (git lfs pull)"
    if re.match(rb"<!doctype html|<html", start, re.IGNORECASE):
        return "; it is an HTML page: a login or an error page in place of the file"
    if start.startswith((b"<?xml", b"<Error>")):
        return "; it is an XML document: an error message in place of the file"
    if start.startswith((b"{", b"[")):
        return "; it is a JSON document: an error message in place of the file"
    return ""
