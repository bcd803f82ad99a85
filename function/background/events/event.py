"""One CloudEvent (version 1.0), as it came or as it goes out, and its place in a trace."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.telemetry.trace_context import TraceContext

JSON = "application/json"
BATCH = "application/cloudevents-batch+json"
STRUCTURED = "application/cloudevents+json"

_SAFE = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"  # printable ASCII without space, quotes and percent


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """An event.

    Attributes:
        id: with the source, what makes it this one.
        source: where it is from.
        type: what happened.
        data: parsed where it is JSON, else bytes; None for none.
        subject: what it is about.
        trace: its place in a trace.
        more: further attributes of an event that goes out.
    """

    id: str
    source: str
    type: str
    data: Any = None
    subject: str = ""
    trace: TraceContext | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def attributes(self) -> dict[str, str]:
        """All of its attributes, without what says how the data is written."""
        own = {"specversion": "1.0", "id": self.id, "source": self.source, "type": self.type}
        subject = {"subject": self.subject} if self.subject else {}
        trace = self.trace.headers if self.trace else {}
        return own | subject | dict(self.more) | trace

    def binary(self) -> tuple[dict[str, str], bytes]:
        """Headers and body in binary mode, of an event whose data is JSON."""
        headers = {f"ce-{k}": quote(v, safe=_SAFE) for k, v in self.attributes().items()}
        return headers | {"Content-Type": JSON}, json.dumps(self.data).encode()

    def structured(self) -> dict[str, Any]:
        """The JSON object in structured mode."""
        if isinstance(self.data, bytes):
            return self.attributes() | {"data_base64": base64.b64encode(self.data).decode()}
        return self.attributes() | {"datacontenttype": JSON, "data": self.data}
