"""How it can fail to read or write what is behind a URI.

The text of an error is for operators; `public` is what a stranger who gave the URI may read.
"""

from __future__ import annotations

from typing import Any


class ObjectError(Exception):
    """An object cannot be read or written.

    Attributes:
        public: the reason, without what only operators may know.
        extra: figures that belong to it, such as a limit and the value that exceeds it.
    """

    def __init__(self, reason: str | None, public: str | None = None, **extra: Any) -> None:
        super().__init__(reason)
        self.public = public or str(reason)
        self.extra = extra


class TransientError(ObjectError):
    """A failure that may be gone at the next attempt.

    Attributes:
        retry_after_s: how many seconds the server asked to wait; 0 when it did not.
    """

    def __init__(self, reason: str, retry_after_s: float = 0.0, public: str | None = None) -> None:
        super().__init__(reason, public)
        self.retry_after_s = retry_after_s


class RestartError(TransientError):
    """What has come so far cannot be continued: the file changed, or it comes only as a whole."""


class RefusedError(ObjectError):
    """A failure that stays: by itself, that the object may not be used."""


class NotFoundError(RefusedError):
    """There is nothing at the URI."""

    def __init__(
        self,
        reason: str | None = "There is nothing at the URI.",
        public: str | None = None,
    ) -> None:
        super().__init__(reason, public)


class ChangedError(RefusedError):
    """What is there is not what the precondition of a write asked for."""

    def __init__(self, reason: str = "it has changed") -> None:
        super().__init__(reason)


class MalformedError(RefusedError):
    """The URI is none, or not one that the store understands."""


class UnsupportedError(RefusedError):
    """What the URI asks for cannot be done, whoever asks."""


class CompressedError(RefusedError):
    """The object comes compressed."""


class TooLargeError(RefusedError):
    """The object has more bytes than allowed; how many, where that is known."""

    def __init__(self, limit: int, value: int | None = None) -> None:
        reason = f"What is behind the URI is larger than {limit} bytes."
        known: dict[str, Any] = {} if value is None else {"value": value}
        super().__init__(reason, limit=limit, **known)
