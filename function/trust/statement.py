"""What an output says of itself, whatever writes it: metadata, C2PA, a label, the audit."""

from __future__ import annotations

from dataclasses import dataclass

from function.documented_enum import DocumentedEnum

SOURCE_TYPES = "http://cv.iptc.org/newscodes/digitalsourcetype/"
"""What the terms of IPTC's vocabulary Digital Source Type begin with."""


class SourceType(DocumentedEnum):
    """How a swap was made, in the terms of IPTC's vocabulary Digital Source Type."""

    GENERATED = (
        "compositeWithTrainedAlgorithmicMedia",
        "a model that was trained for it has generated the face, and the rest is the target",
    )
    COMPOSED = (
        "compositeCapture",
        "the face is moved from one photo onto another, and nothing is generated",
    )

    @property
    def uri(self) -> str:
        """The term."""
        return SOURCE_TYPES + self.value


@dataclass(frozen=True, slots=True)
class Producer:
    """Who answers for outputs, as China's labelling measures want it said (GB 45438-2025).

    Attributes:
        name: the name or code of the service that makes them.
        propagator: that of the service that spreads them; "" for none.
    """

    name: str
    propagator: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """What one output says of itself. There is nothing personal in it.

    Attributes:
        request_id: of the request, job or event that made it.
        source_type: how it was made.
        software: name and version.
        producer: who answers for it, where an operator names somebody.
        ingredients: what its input said of its own making, kept word for word: XMP packets.
    """

    request_id: str
    source_type: SourceType
    software: str
    producer: Producer | None = None
    ingredients: tuple[bytes, ...] = ()
