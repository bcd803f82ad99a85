"""What can go wrong; `ember_client.problems` has a class for each code of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping


class EmberError(Exception):
    """Everything that this library raises by itself."""


class Unreachable(EmberError):
    """No answer came: nothing listens there, or the connection was lost; `__cause__` says why."""


class UnexpectedAnswer(EmberError):
    """The answer is not one of Ember: something else listens there, or a proxy has answered.

    Attributes:
        status: of HTTP.
        body: the answer.
    """

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body

    def __str__(self) -> str:
        return f"the answer is not one of Ember: status {self.status}, {self.body[:200]!r}"


class Problem(EmberError):
    """Ember refuses, or has failed (RFC 9457). Each code has a class of its own.

    Attributes:
        code: stable, for programs; of a subclass also a constant.
        status: of HTTP.
        detail: what happened this time.
        hint: what can be done about it.
        request_id: by which the server's log has it.
        retry_after_s: when a further try makes sense, in seconds; None where that is not said.
        members: all of the answer; some codes have more, such as `field` or `limit`.
    """

    code: ClassVar[str] = ""

    def __init__(self, members: Mapping[str, Any], retry_after_s: float | None = None) -> None:
        super().__init__(members, retry_after_s)
        self.members, self.retry_after_s = members, retry_after_s
        self.status = int(members["status"])
        self.detail, self.hint = str(members["detail"]), str(members.get("hint", ""))
        self.request_id = str(members.get("request_id", ""))

    def __str__(self) -> str:
        return f"{self.members['code']}: {self.detail} {self.hint} (request {self.request_id})"
