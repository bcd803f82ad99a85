"""`gs://bucket/name` URIs, put together and taken apart."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from warmup.objects.errors import MalformedError

_GENERATION = re.compile("[0-9]{1,19}")


def uri(bucket: str, name: str, generation: int | None = None) -> str:
    """The URI of an object, of exactly one generation if that is given."""
    exactly = f"#{generation}" if generation is not None else ""
    return f"gs://{bucket}/{quote(name)}{exactly}"


def parse(uri: str) -> tuple[str, str, int | None]:
    """Bucket, name and generation of a `gs://` URI; its name may be percent-encoded, once.

    Raises:
        MalformedError: it is none.
    """
    try:
        parts = urlsplit(uri)
        name, generation = unquote(parts.path[1:], errors="strict"), parts.fragment
        good = parts.netloc and name and not parts.query and len(name.encode()) <= 1024
    except ValueError:
        good, generation = False, ""
    if not good or (generation and not _GENERATION.fullmatch(generation)):
        raise MalformedError("A gs: URI looks like gs://bucket/folder/photo.jpg.")
    return parts.netloc, name, int(generation) if generation else None
