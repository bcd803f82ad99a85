"""XMP packets (ISO 16684-1): from bytes to values, and from values to bytes.

A value is a text, a list of values, or a structure of values by name. Only names of the namespaces
below are known; all else is left out. Packets come from anywhere, so there are no entities, and
depth, number and length are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Never, TypeAlias
from xml.parsers import expat

if TYPE_CHECKING:
    from collections.abc import Mapping

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

NAMESPACES = {
    "Iptc4xmpExt": "http://iptc.org/std/Iptc4xmpExt/2008-02-29/",
    "TC260": "http://www.tc260.org.cn/ns/AIGC/1.0/",
    "dcterms": "http://purl.org/dc/terms/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "stEvt": "http://ns.adobe.com/xap/1.0/sType/ResourceEvent#",
    "stJob": "http://ns.adobe.com/xap/1.0/sType/Job#",
    "stRef": "http://ns.adobe.com/xap/1.0/sType/ResourceRef#",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "xmpBJ": "http://ns.adobe.com/xap/1.0/bj/",
    "xmpMM": "http://ns.adobe.com/xap/1.0/mm/",
}
"""The prefixes of names, as everybody writes them."""

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_PREFIXES = {uri: prefix for prefix, uri in NAMESPACES.items()} | {_RDF: "rdf"}
_LISTS = {"rdf:Bag", "rdf:Seq", "rdf:Alt"}
_ORDERED = {"xmpMM:History"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_DEPTH, _MOST_ELEMENTS = 32, 20_000


@dataclass(slots=True)
class _Element:
    """An element of XML; its name and those of its attributes have prefixes as above."""

    name: str
    attributes: dict[str, str]
    children: list[_Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def values(packet: bytes) -> dict[str, Value]:
    """The properties of a packet by name.

    Args:
        packet: bytes from anywhere.

    Returns:
        Names with their prefix ("xmp:CreatorTool"); nothing where the packet is damaged.
    """
    try:
        root = _parsed(packet)
    except (expat.ExpatError, ValueError, LookupError):
        return {}
    found: dict[str, Value] = {}
    for rdf in [root, *root.children, *(one for each in root.children for one in each.children)]:
        if rdf.name == "rdf:RDF":
            for description in rdf.children:
                if description.name == "rdf:Description":
                    found = _structure(description) | found
    return found


def written(properties: Mapping[str, Value]) -> bytes:
    """A packet with these properties: equal ones make equal bytes, in UTF-8."""
    body = "\n".join(element(name, value) for name, value in properties.items())
    used = set(re.findall(r"</?(\w+):", body))
    declared = "".join(
        f'\n xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items() if prefix in used
    )
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{_RDF}">\n'
        f'<rdf:Description rdf:about=""{declared}>\n{body}\n</rdf:Description>\n'
        '</rdf:RDF></x:xmpmeta>\n<?xpacket end="w"?>'
    ).encode()


def element(name: str, value: Value) -> str:
    """A property as XML, as it stands in a packet."""
    if isinstance(value, str):
        text = _NO_XML.sub("", value)
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<{name}>{text}</{name}>"
    if isinstance(value, list):
        kind = "rdf:Seq" if name in _ORDERED else "rdf:Bag"
        items = "".join(element("rdf:li", each) for each in value)
        return f"<{name}><{kind}>{items}</{kind}></{name}>"
    inner = "".join(element(*each) for each in value.items())
    return f'<{name} rdf:parseType="Resource">{inner}</{name}>'


def _value(element: _Element) -> Value:
    """What an element says, in any of the forms in which RDF writes the same."""
    for child in element.children:
        if child.name in _LISTS:
            return [_value(each) for each in child.children if each.name == "rdf:li"]
        if child.name == "rdf:Description":
            return _structure(child)
        if child.name == "rdf:value":
            return _value(child)
    if "rdf:resource" in element.attributes:
        return element.attributes["rdf:resource"]
    return _structure(element) or "".join(element.texts).strip()


def _structure(element: _Element) -> dict[str, Value]:
    """The properties of an element; short ones may stand as attributes."""
    found: dict[str, Value] = {
        name: text for name, text in element.attributes.items() if _is_property(name)
    }
    for child in element.children:
        if _is_property(child.name):
            found.setdefault(child.name, _value(child))
    return found


def _is_property(name: str) -> bool:
    return bool(name) and not name.startswith("rdf:")


def _parsed(packet: bytes) -> _Element:
    """The tree of a packet.

    Raises:
        ExpatError, ValueError, LookupError: it is no XML, has a document type, or is too large.
    """
    root = _Element("", {})
    path, count = [root], 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(path) > _MOST_DEPTH or count > _MOST_ELEMENTS:
            raise ValueError("too many elements")
        known = {_named(each): text for each, text in attributes.items()}
        known.pop("", None)
        element = _Element(_named(name), known)
        path[-1].children.append(element)
        path.append(element)

    def end(name: str) -> None:  # noqa: ARG001 (expat hands it over)
        path.pop()

    def text(part: str) -> None:
        path[-1].texts.append(part)

    def refuse(*_: object) -> Never:
        raise ValueError("a document type")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, refuse
    if b"\0" not in packet[:4]:  # not UTF-16: whatever fills it up is none of it
        packet = packet.strip(b"\0 \t\r\n")
    parser.Parse(packet, True)
    return root


def _named(name: str) -> str:
    """A name as expat has it, with a prefix from above; "" for one of another namespace."""
    uri, _, local = name.rpartition(" ")
    prefix = _PREFIXES.get(uri)
    return f"{prefix}:{local}" if prefix else ""
