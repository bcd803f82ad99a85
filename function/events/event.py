"""One CloudEvent (version 1.0), as it came or as it goes out, and its place in a trace."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = "application/json"
BATCH = "application/cloudevents-batch+json"
STRUCTURED = "application/cloudevents+json"

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-(..)")
_SAFE = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"  # printable ASCII without space, quotes and percent


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace that an event belongs to (W3C Trace Context)."""

    id: str
    flags: str
    state: str = ""

    @classmethod
    def parse(cls, parent: object, state: object = "") -> Self | None:
        """Read a `traceparent` and a `tracestate`; None where there is no good one."""
        match = _TRACEPARENT.match(parent) if isinstance(parent, str) else None
        return cls(match[1], match[2], state if isinstance(state, str) else "") if match else None

    def attributes(self) -> dict[str, str]:
        """The extension attributes of an event that comes next in it, as a span of its own."""
        parent = f"00-{self.id}-{secrets.token_hex(8)}-{self.flags}"
        return {"traceparent": parent} | ({"tracestate": self.state} if self.state else {})


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Attributes:
        id: with the source, what makes it this one.
        source: where it is from.
        type: what happened.
        data: parsed where it is JSON, else bytes; None for none.
        subject: what it is about.
        trace: the trace that it belongs to.
        more: further attributes of an event that goes out.
    """

    id: str
    source: str
    type: str
    data: Any = None
    subject: str = ""
    trace: Trace | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def attributes(self) -> dict[str, str]:
        """All of its attributes, without what says how the data is written."""
        own = {"specversion": "1.0", "id": self.id, "source": self.source, "type": self.type}
        subject = {"subject": self.subject} if self.subject else {}
        trace = self.trace.attributes() if self.trace else {}
        return own | subject | dict(self.more) | trace

    def binary(self) -> tuple[dict[str, str], bytes]:
        """Headers and body in binary mode."""
        headers = {f"ce-{k}": quote(v, safe=_SAFE) for k, v in self.attributes().items()}
        return headers | {"Content-Type": JSON}, json.dumps(self.data).encode()

    def structured(self) -> dict[str, Any]:
        """The JSON object in structured mode."""
        return self.attributes() | {"datacontenttype": JSON, "data": self.data}
