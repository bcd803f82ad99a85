"""The label that China's standard GB 45438-2025 wants in the metadata of generated files.

Its annex E has seven fields, all of them texts, in one JSON object:

- `Label`: 1 it is generated, 2 it may be, 3 it is suspected to be;
- `ContentProducer`, `ProduceID`: the name or code of the service that generated it, and that
  service's own number of the content;
- `ReservedCode1`: for the producer's own protection of the label, such as a signature; not used;
- `ContentPropagator`, `PropagateID`, `ReservedCode2`: the same of a service that spreads it.

Where a file has it is in the practice guides of TC260's secretariat of 28 August 2025, of which
TC260-PG-20259A is for images and TC260-PG-20257A for videos: images have the JSON, not encoded any
further, as the XMP property `TC260:AIGC` with the namespace below; MP4 and QuickTime have it under
the key `AIGC` in `moov.udta.meta`, Matroska as a tag `AIGC`; for any other kind, XMP. What is said
here comes from readings of these texts by several projects that agree with each other, not from the
texts themselves, which are in Chinese and not free to copy; who is bound by them should read them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from function import jsontext

if TYPE_CHECKING:
    from function.trust.statement import Producer

NAMESPACE = "http://www.tc260.org.cn/ns/AIGC/1.0/"

_GENERATED = "1"
_MOST_CHARACTERS = 64 << 10


def label(producer: Producer, request_id: str) -> str:
    """The text of the label of an output.

    Args:
        producer: who answers for it, and who spreads it.
        request_id: the number that both have for it.
    """
    fields = {
        "Label": _GENERATED,
        "ContentProducer": producer.name,
        "ProduceID": request_id,
        "ReservedCode1": "",
        "ContentPropagator": producer.propagator,
        "PropagateID": request_id if producer.propagator else "",
        "ReservedCode2": "",
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def fields(text: str) -> dict[str, str]:
    """The fields of a label of whatever origin; none where it is damaged."""
    if len(text) > _MOST_CHARACTERS:
        return {}
    try:
        found = jsontext.parse(text.encode())
    except ValueError:
        return {}
    return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}
