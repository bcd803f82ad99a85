"""Images that a JSON request names by URI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from function.problems import Problem
from function.requests import Upload
from function.storage.storage import problem
from warmup.objects import gs_uri
from warmup.objects.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection

    from function.storage.storage import Storage
    from warmup.objects.protocol import Take

_MAX_SCHEME = 40


class Fetch(Protocol):
    """Gets the image behind a URI."""

    async def __call__(self, uri: str, field: str, take: Take) -> Upload:
        """Fetch one image.

        Args:
            uri: as the request has it.
            field: the request's field, for problems.
            take: takes their part of the bytes of all bodies, before they come.

        Raises:
            Problem: it cannot be fetched.
        """
        ...


@dataclass(frozen=True, slots=True)
class Uris:
    """Fetches images from the storage.

    Attributes:
        storage: reads what URIs lead to.
        limit: the most bytes that an image may have.
        buckets: what gs:// URIs may name, as buckets or beginnings of `bucket/name`; "*" is all.
    """

    storage: Storage
    limit: int
    buckets: tuple[str, ...] = ()

    async def __call__(self, uri: str, field: str, take: Take) -> Upload:
        """Fetch one image; the arguments are those of `Fetch`.

        Raises:
            Problem: `bad_value`, `unsupported_uri`, `object_not_found`, `object_forbidden`,
                `object_too_large`, `storage_unavailable`.
        """
        try:
            self._check(uri)
            found = await self.storage.read(uri, self.limit, take)
        except Problem as problem:
            raise Problem(
                problem.code,
                f"`{field}`: {problem.detail}",
                headers=problem.headers,
                **{"field": field} | problem.extra,
            ) from problem
        return Upload(found.data, field, found.facts.media_type)

    def _check(self, uri: str) -> None:
        """See that it is a URI, and that requests may name it."""
        scheme, colon, _ = uri[:_MAX_SCHEME].partition(":")
        if not colon or not scheme.isascii() or not scheme.replace("+", "").isalnum():
            raise Problem("bad_value", "This is not a URI.")
        if scheme.lower() == "gs":
            check_bucket(uri, self.buckets, "EMBER_URI_BUCKETS")


def check_bucket(uri: str, buckets: Collection[str], setting: str) -> None:
    """See that a gs:// URI is one that requests may name.

    Args:
        uri: the URI.
        buckets: what they may name, as buckets or beginnings of `bucket/name`; "*" is all.
        setting: what says so.

    Raises:
        Problem: `object_forbidden`, `bad_value`.
    """
    try:
        bucket, name, _ = gs_uri.parse(uri)
    except RefusedError as error:
        raise problem(error) from None
    for each in buckets:
        allowed, slash, prefix = each.partition("/")
        if each == "*" or (bucket == allowed and (not slash or name.startswith(prefix))):
            return
    raise Problem(
        "object_forbidden",
        f"gs:// URIs may not name that in the bucket {bucket}.",
        setting=setting,
    )
