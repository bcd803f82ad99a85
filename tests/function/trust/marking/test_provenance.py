"""What is said of an output, and what is kept of an input."""

from __future__ import annotations

import json
from dataclasses import replace

from function.trust.marking import aigc, provenance, xmp
from function.trust.marking.containers.carried import Carried
from tests.function.trust.marking.packets import FOREIGN, GENERATED, PLAIN, PRIVATE, SWAP


def said(packet):
    return provenance.found(Carried((packet,)))


def test_a_packet_says_how_by_what_and_for_which_request():
    found = said(provenance.packet(PLAIN))
    assert found.source_type == PLAIN.source_type.uri
    assert found.source_type.startswith("http://cv.iptc.org/newscodes/digitalsourcetype/")
    assert (found.software, found.request_id) == (PLAIN.software, PLAIN.request_id)
    assert found.aigc is None
    assert found.ingredients == ()


def test_with_a_producer_it_has_the_label_of_chinas_standard_to_the_letter():
    values = xmp.values(provenance.packet(SWAP))
    assert values["TC260:AIGC"] == (
        '{"Label":"1","ContentProducer":"某公司 <A&B>","ProduceID":"5f0c2d","ReservedCode1":"",'
        '"ContentPropagator":"Verteiler","PropagateID":"5f0c2d","ReservedCode2":""}'
    )
    assert said(provenance.packet(SWAP)).aigc == json.loads(values["TC260:AIGC"])


def test_without_one_who_spreads_it_there_is_no_number_of_theirs():
    producer = replace(SWAP.producer, propagator="")
    assert json.loads(aigc.label(producer, "r"))["PropagateID"] == ""


def test_a_damaged_label_has_no_fields():
    for text in ("", "{", "[1]", "1", '{"a": NaN}', "[" * 100_000, "{" * 100_000):
        assert aigc.fields(text) == {}


def test_of_an_input_its_making_is_kept_and_nothing_else():
    (kept,) = provenance.ingredients(Carried((FOREIGN,)))
    assert not [word for word in PRIVATE if word in kept]
    values = xmp.values(kept)
    assert values["Iptc4xmpExt:DigitalSourceType"] == GENERATED
    assert values["TC260:AIGC"] == '{"Label":"1","ProduceID":"x"}'
    assert values["xmp:CreatorTool"] == "Painter 3"
    assert values["photoshop:Credit"] == "Agency"
    assert values["xmpMM:DerivedFrom"] == {"stRef:instanceID": "xmp.iid:00"}
    assert values["xmpMM:History"] == [
        {"stEvt:action": "created", "stEvt:softwareAgent": "Painter 3"},
        {"stEvt:action": "saved"},
    ]


def test_an_input_that_names_only_what_runs_in_its_camera_is_no_ingredient():
    packet = xmp.written({"xmp:CreatorTool": "SecretCam Ver.1.10"})
    assert provenance.ingredients(Carried((packet,))) == ()
    assert provenance.ingredients(Carried()) == ()
    assert provenance.ingredients(Carried((b"<damaged",))) == ()


def test_an_ingredient_is_referred_to_by_its_own_name_and_stands_in_the_pantry():
    kept = provenance.ingredients(Carried((FOREIGN,)))
    packet = provenance.packet(replace(PLAIN, ingredients=kept))
    values = xmp.values(packet)
    assert values["xmpMM:Ingredients"] == [{"stRef:instanceID": "xmp.iid:11-22"}]
    (item,) = values["xmpMM:Pantry"]
    assert item == xmp.values(kept[0])
    assert said(packet).ingredients[0].source_type == GENERATED
    assert said(packet).source_type == PLAIN.source_type.uri


def test_a_swap_of_a_swap_keeps_both():
    first = replace(SWAP, ingredients=provenance.ingredients(Carried((FOREIGN,))))
    kept = provenance.ingredients(Carried((provenance.packet(first),)))
    assert len(kept) == 2
    found = said(provenance.packet(replace(PLAIN, ingredients=kept)))
    assert [each.software for each in found.ingredients] == ["Ember 1.0", "Painter 3"]
    assert found.ingredients[0].request_id == SWAP.request_id
    assert found.ingredients[0].aigc["ContentProducer"] == SWAP.producer.name


def test_a_label_beside_xmp_and_a_manifest_are_ingredients_too():
    (kept,) = provenance.ingredients(Carried(labels=('{"Label":"1"}',), manifest=True))
    values = xmp.values(kept)
    assert values == {"TC260:AIGC": '{"Label":"1"}', "dcterms:provenance": "self#jumbf=/c2pa"}


def test_the_same_ingredient_twice_is_one():
    kept = provenance.ingredients(Carried((FOREIGN,)))
    packet = provenance.packet(replace(PLAIN, ingredients=kept * 2))
    assert len(xmp.values(packet)["xmpMM:Pantry"]) == 1


def test_however_much_inputs_say_it_fits_and_none_is_forgotten(caplog):
    long = [
        xmp.written(
            {
                "Iptc4xmpExt:DigitalSourceType": GENERATED,
                "photoshop:Credit": f"{number}" + "&" * 5000,
                "xmpMM:InstanceID": "字" * 3000,
                "xmpMM:History": [{"stEvt:action": "&" * 4000}] * 50,
            }
        )
        for number in range(40)
    ]
    packet = provenance.packet(replace(SWAP, ingredients=tuple(long)))
    assert len(packet) < 60_000
    found = said(packet)
    assert len(found.ingredients) == len(xmp.values(packet)["xmpMM:Ingredients"])
    assert {each.source_type for each in found.ingredients} == {GENERATED}
    assert "left out" in caplog.text


def test_what_is_handed_over_as_an_ingredient_is_filtered_again():
    packet = provenance.packet(replace(PLAIN, ingredients=(FOREIGN, b"<damaged", b"")))
    assert not [word for word in PRIVATE if word in packet]
