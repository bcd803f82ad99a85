"""Each way through the gate, with models that say what they were told."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from function.faces.identity import ARCFACE, DLIB
from function.process.wiring.service import embedded
from function.settings import load
from function.settings.gate import GateSettings
from function.trust.gate.gate import build_gate, gated
from function.trust.gate.identity_list import IdentityList, new_person
from function.trust.gate.verdict import GateCheck, GateRefusedError, GateVerdict, by_check
from warmup.models import manifest
from warmup.settings.variables import SettingsError

from .conftest import MODEL, Told, alike, face, models, somebody

A, B, C = somebody(1), somebody(2), somebody(3)


def make(**settings):
    gate = build_gate(GateSettings(**settings), MODEL)
    gate.told = []
    gate.listeners.append(gate.told.append)
    return gate


@pytest.fixture(autouse=True)
def tellable(monkeypatch):
    """Lets a test hang something on a gate, which has slots."""
    from function.trust.gate import gate

    open_gate = type("Gate", (gate.Gate,), {})
    monkeypatch.setattr(gate, "Gate", open_gate)


def refused(code, call, *args, **kwargs):
    with pytest.raises(GateRefusedError) as caught:
        call(*args, **kwargs)
    assert caught.value.code == code
    assert caught.value.kind.status == 422
    return caught.value


class TestContent:
    def test_a_target_below_the_threshold_passes_and_one_on_it_does_not(self, pixels):
        gate = make(gate_threshold=0.6)
        assert gate.target(models(Told(0.59)), pixels).allowed
        error = refused("refused_content", gate.target, models(Told(0.6)), pixels)
        assert error.verdicts == {"content": "refused 0.60"}
        assert [each.allowed for each in gate.told] == [True, False]

    def test_a_score_that_is_no_number_is_refused(self, pixels):
        refused("refused_content", make().target, models(Told(math.nan)), pixels)

    def test_the_caller_learns_neither_score_nor_threshold(self, pixels):
        error = refused("refused_content", make().target, models(Told(0.87)), pixels, "clip")
        assert error.detail == "The clip shows what is not swapped here."
        assert error.extra == {}
        assert not any(digit in error.detail + error.hint for digit in "0123456789")

    def test_off_it_looks_at_nothing(self, pixels):
        gate, told = make(gate=False), Told()
        assert gate.target(models(told), pixels) is None
        assert gate.output(models(told), pixels, None, [face(90)]) is None
        assert (told.asked, gate.facts()["gate"]) == (0, "off")

    def test_on_without_a_model_it_fails_and_does_not_pass(self, pixels):
        with pytest.raises(RuntimeError, match="no model"):
            make().target(models(), pixels)

    @pytest.mark.parametrize(
        ("score", "side", "swap", "looks"),
        [
            (0.1, 30, None, False),
            (0.31, 30, None, True),  # near to it
            (0.1, 71, None, True),  # half of the picture is faces
            (0.1, 30, object(), False),
            (0.1, 32, object(), True),  # a tenth is, and they are generated
        ],
    )
    def test_a_result_is_looked_at_where_it_may_differ(self, pixels, score, side, swap, looks):
        gate, told = make(gate_threshold=0.6), Told(0.2)
        target = GateVerdict(GateCheck.CONTENT, allowed=True, score=score)
        found = gate.output(models(told, swap=swap), pixels, target, [face(side)])
        assert (found is not None, told.asked) == (looks, int(looks))

    def test_a_result_that_became_so_is_refused(self, pixels):
        target = GateVerdict(GateCheck.CONTENT, allowed=True, score=0.5)
        call = make().output
        error = refused("refused_content", call, models(Told(0.9)), pixels, target, [face(9)])
        assert error.verdicts == {"output": "refused 0.90"}


class TestAge:
    def test_without_a_model_nobodys_age_is_known(self, pixels):
        assert make().age(models(), pixels, [face(9)], "source") is None

    def test_the_margin_counts(self, pixels):
        gate = make()
        assert gate.age(models(age=Told(23, 40)), pixels, [face(9)] * 2, "target").allowed
        error = refused(
            "refused_age", gate.age, models(age=Told(40, 22.9)), pixels, [face(9)] * 2, "source"
        )
        assert error.detail == "Somebody in the source photo may be too young."
        assert make(gate_age_margin=0).age(models(age=Told(18)), pixels, [face(9)], "x").allowed

    def test_an_age_that_is_no_number_is_refused(self, pixels):
        refused(
            "refused_age", make().age, models(age=Told(40, math.nan)), pixels, [face(9)] * 2, "x"
        )


class TestPeople:
    @pytest.fixture
    def gate(self, tmp_path):
        gate = make(deny_list=f"file://{tmp_path}/deny.jsonl")
        self.person = new_person("asked", MODEL, [A])
        gate.deny.people = IdentityList((self.person,))
        return gate

    def test_strangers_pass(self, gate):
        (verdict,) = gate.people(DLIB, [[B]], [C])
        assert (verdict.check, verdict.allowed) == (GateCheck.DENY_LIST, True)

    def test_a_listed_person_is_neither_source_nor_target(self, gate):
        near = alike(A, 0.45)
        for people, targets in (
            ([[near]], [C]),
            ([[B, near]], []),
            ([[B], [C, near]], []),
            ([[B]], [C, near]),
        ):
            error = refused("refused_identity", gate.people, DLIB, people, targets)
            assert error.verdicts == {"deny_list": f"refused {self.person.id}"}
            assert self.person.id not in error.detail + error.hint + str(error.extra)

    def test_somebody_who_looks_a_little_alike_passes(self, gate):
        assert gate.people(DLIB, [[alike(A, 0.51)]], [])[0].allowed

    def test_without_lists_nothing_is_said(self):
        assert make().people(DLIB, [[A]], [B]) == []

    def test_lists_of_cosines_have_their_own_distance(self, gate):
        mixed = A + 0.8 * B  # 1 - cosine of 0.22, whatever its length
        refused("refused_identity", gate.people, ARCFACE, [[np.asarray(7 * mixed)]], [])
        assert gate.people(ARCFACE, [[np.asarray(A + 4 * B)]], [])[0].allowed

    @pytest.fixture
    def enrolled(self, tmp_path):
        gate = make(sources="enrolled", consent_list=f"file://{tmp_path}/consent.jsonl")
        soon = datetime.now(UTC) + timedelta(days=1)
        self.one, self.other = (new_person("x", MODEL, [each], until=soon) for each in (A, B))
        gate.enrolled.people = IdentityList((self.one, self.other))
        return gate

    def test_only_an_enrolled_person_is_a_source(self, enrolled):
        (verdict,) = enrolled.people(DLIB, [[alike(A, 0.3), alike(A, 0.1)]], [C])
        assert str(verdict) == f"allowed {self.one.id}"
        refused("refused_identity", enrolled.people, DLIB, [[C]], [])
        refused("refused_identity", enrolled.people, DLIB, [[A, C]], [])

    def test_photos_of_two_enrolled_people_are_not_one_source(self, enrolled):
        refused("refused_identity", enrolled.people, DLIB, [[A, B]], [])

    def test_of_several_people_each_has_to_be_enrolled(self, enrolled):
        (verdict,) = enrolled.people(DLIB, [[alike(A, 0.3), A], [B]], [C])
        assert str(verdict) == f"allowed {self.one.id} {self.other.id}"
        refused("refused_identity", enrolled.people, DLIB, [[A], [C]], [])
        refused("refused_identity", enrolled.people, DLIB, [[A], []], [])

    def test_consent_that_has_ended_or_was_revoked_holds_no_more(self, enrolled):
        past = datetime.now(UTC) - timedelta(seconds=1)
        enrolled.enrolled.people = IdentityList((new_person("x", MODEL, [A], until=past),))
        refused("refused_identity", enrolled.people, DLIB, [A], [])
        enrolled.enrolled.people = IdentityList()
        refused("refused_identity", enrolled.people, DLIB, [A], [])


def test_consent_is_asked_and_told():
    gate = make(consent="stated")
    error = refused("consent_required", gate.consent, None)
    assert error.verdicts == {"consent": "refused stated"}
    assert gate.consent("Ada agreed, for the anniversary film").text.startswith("Ada")
    assert [str(each) for each in gate.told] == ["refused stated", "allowed stated"]
    assert make().consent(None) is None
    refused("consent_required", make().consent, None, "stated")


def test_for_the_audit_a_refusal_of_a_check_counts_more_than_what_it_allowed():
    said = [GateVerdict(GateCheck.AGE, allowed=each) for each in (True, False, True)]
    assert by_check([*said, GateVerdict(GateCheck.CONTENT, allowed=True, note="0.1")]) == {
        "age": "refused",
        "content": "allowed 0.1",
    }


class TestManifests:
    EMBEDDED = manifest.read(embedded())

    def test_a_manifest_without_a_gate_gets_the_embedded_one(self):
        bare = [model for model in self.EMBEDDED if model.role != "gate"]
        assert gated(bare, self.EMBEDDED, on=True) == self.EMBEDDED
        assert gated(bare, self.EMBEDDED, on=False) == tuple(bare)

    def test_a_gate_of_its_own_stays_and_off_it_is_not_loaded(self):
        assert gated(self.EMBEDDED, (), on=True) == self.EMBEDDED
        assert "gate" not in {model.role for model in gated(self.EMBEDDED, (), on=False)}


class TestSettings:
    def test_what_contradicts_itself_is_named(self):
        with pytest.raises(SettingsError) as caught:
            load({"EMBER_SOURCES": "enrolled", "EMBER_CONSENT": "signed"})
        assert "EMBER_CONSENT_LIST" in str(caught.value)
        assert "EMBER_CONSENT_KEYS" in str(caught.value)

    @pytest.mark.parametrize("given", ["deny.jsonl", "gs://bucket", "https://host/a", "file://h/a"])
    def test_a_list_is_behind_a_path_or_a_uri(self, given):
        with pytest.raises(SettingsError, match="EMBER_DENY_LIST"):
            load({"EMBER_DENY_LIST": given})
        found = load({"EMBER_DENY_LIST": "/lists/deny.jsonl"}).gate.deny_list
        assert found == "file:///lists/deny.jsonl"

    def test_the_gate_is_on_unless_it_is_said_to_be_off(self):
        assert load({}).gate.gate
        assert not load({"EMBER_GATE": "off"}).gate.gate


async def test_it_reads_its_lists_before_it_runs_and_a_missing_one_is_an_error(tmp_path):
    path = tmp_path / "deny.jsonl"
    gate = make(deny_list=f"file://{path}")
    with pytest.raises(SettingsError, match="There is nothing"):
        async with gate.running():
            pytest.fail("it must not run")
    path.write_bytes(IdentityList((new_person("asked", MODEL, [A]),)).data())
    before = asyncio.all_tasks()
    async with gate.running():
        refused("refused_identity", gate.people, DLIB, [[A]], [])
        facts = gate.facts()["deny_list"]
        assert (facts["people"], facts["problem"]) == (1, None)
    assert asyncio.all_tasks() == before
