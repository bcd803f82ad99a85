"""Packets to values and back, also such as nobody should write."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.trust.marking import xmp
from tests.function.trust.marking.packets import FOREIGN, GENERATED

HEAD = (
    b"<x:xmpmeta xmlns:x='adobe:ns:meta/' xmlns:xmp='http://ns.adobe.com/xap/1.0/'>"
    b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
)
TAIL = b"</rdf:RDF></x:xmpmeta>"


def one(inner):
    return HEAD + b"<rdf:Description>" + inner + b"</rdf:Description>" + TAIL


def test_every_form_in_which_rdf_writes_a_value_is_read():
    found = xmp.values(FOREIGN)
    assert found["xmp:CreatorTool"] == "Painter 3"
    assert found["Iptc4xmpExt:DigitalSourceType"] == GENERATED
    assert found["TC260:AIGC"] == '{"Label":"1","ProduceID":"x"}'
    assert found["xmpMM:DerivedFrom"]["stRef:instanceID"] == "xmp.iid:00"
    assert [each["stEvt:action"] for each in found["xmpMM:History"]] == ["created", "saved"]


def test_names_of_other_namespaces_are_left_out():
    assert not [name for name in xmp.values(FOREIGN) if name.startswith(("exif", "tiff", "dc:"))]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_encodings_that_xml_has_are_read(encoding):
    packet = one(b"<xmp:CreatorTool>T\xc3\xb6\xc3\xb6l</xmp:CreatorTool>").decode()
    assert xmp.values(packet.encode(encoding)) == {"xmp:CreatorTool": "Tööl"}


def test_what_is_written_is_xml_and_is_read_as_it_was():
    values = {
        "xmp:CreatorTool": "a <b> & \"c\" ]]> 'd' 字 😀",
        "xmpMM:History": [{"stEvt:action": "x", "stEvt:softwareAgent": "y"}],
        "xmpMM:Pantry": [{"xmpMM:InstanceID": "i", "xmpBJ:JobRef": [{"stJob:id": "j"}]}],
    }
    packet = xmp.written(values)
    ET.fromstring(packet)
    assert xmp.values(packet) == values
    assert packet == xmp.written(values)


@given(st.text())
def test_any_text_makes_xml(text):
    packet = xmp.written({"xmp:CreatorTool": text})
    ET.fromstring(packet)
    assert b"\0" not in packet


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_any_bytes_are_read_without_an_error(noise):
    xmp.values(noise)
    xmp.values(one(noise))
    xmp.values(FOREIGN[: len(FOREIGN) // 2] + noise + FOREIGN[len(FOREIGN) // 2 :])


def test_a_packet_cut_anywhere_says_nothing_or_what_it_said():
    whole = xmp.values(FOREIGN)
    for end in range(len(FOREIGN)):
        assert xmp.values(FOREIGN[:end]) in ({}, whole)


@pytest.mark.parametrize(
    "packet",
    [
        b"<!DOCTYPE x [<!ENTITY a 'aa'>]>" + one(b"<xmp:CreatorTool>&a;</xmp:CreatorTool>"),
        b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'>" + one(b"<xmp:CreatorTool>a</xmp:CreatorTool>"),
        one(b"<xmp:A>" * 40 + b"</xmp:A>" * 40),
        one(b"<xmp:A/>" * 20_001),
        b"<?xml version='1.0' encoding='no-such'?>" + one(b"<xmp:CreatorTool>a</xmp:CreatorTool>"),
        b"",
    ],
)
def test_document_types_and_what_is_too_deep_or_too_many_say_nothing(packet):
    assert xmp.values(packet) == {}


def test_entities_never_grow():
    bomb = "".join(f"<!ENTITY a{k} '{f'&a{k - 1};' * 10}'>" for k in range(1, 12))
    packet = f"<!DOCTYPE x [<!ENTITY a0 'ha'>{bomb}]>".encode() + one(b"<xmp:A>&a11;</xmp:A>")
    assert xmp.values(packet) == {}
