"""What is refused, whatever way it comes in: one answer, no work, a line of the audit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from function.process.wiring.service import build_service
from function.runtime.sanity import WrongResultError
from function.trust.gate.content import ContentGate
from tests.function.background.jobs.conftest import finished, new_id, put
from tests.function.live import COLLINS, DEFAULTS, HOPPER, SOURCE, TARGET, Live
from tests.function.trust.conftest import accounted
from warmup.settings.variables import replace as changed


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A server whose gate refuses whatever it looks at, once warm: its model is the real one."""
    with accounted(tmp_path_factory.mktemp("audit")) as server:
        server.service.trust.gate.content = ContentGate(1e-9)
        yield server


def listed(tmp_path, photo, *words):
    """Put a person on a list with the command, and return the list."""
    (tmp_path / "person.jpg").write_bytes(photo)
    path = tmp_path / "list.jsonl"
    ember = [sys.executable, "-m", "function", *words, str(tmp_path / "person.jpg")]
    variable = "EMBER_DENY_LIST" if words[0] == "deny" else "EMBER_CONSENT_LIST"
    subprocess.run(ember, check=True, env=os.environ | {variable: str(path)})
    return path.as_uri()


def test_a_refused_photo_is_answered_with_what_to_do(strict):
    told = strict.form("/v1/swap", SOURCE, TARGET, Ember_Request_Id="no").problem(
        "refused_content", 422
    )
    assert told["hint"]
    assert "0." not in told["detail"]
    (line,) = [each for each in strict.lines("refusal") if each["request"] == "no"]
    assert line["code"] == "refused_content"
    assert line["verdicts"]["content"].startswith("refused")
    assert "output" not in line
    assert 'ember_refusals_total{code="refused_content"}' in strict.get("/metrics").body.decode()


def test_a_refused_target_of_a_job_leaves_nothing(strict, plain):
    name = new_id()
    put(strict, name, SOURCE, TARGET, ("target", plain.read_bytes()))
    told = finished(strict, name)
    assert told["state"] == "failed"
    assert {each["problem"]["code"] for each in told["items"]} == {"refused_content"}
    assert {each["result"] for each in told["items"]} == {None}


async def test_a_gate_that_refuses_the_golden_photos_leaves_the_replica_unready():
    service = build_service(changed(DEFAULTS, gate_threshold=1e-9))
    await service.fetch()
    await service.load()
    with pytest.raises(WrongResultError, match="EMBER_GATE_THRESHOLD"):
        await service.warm()
    service.close()


def test_faces_are_found_all_the_same(strict):
    assert strict.form("/v1/faces", ("image", HOPPER)).status == 200


def test_the_gate_is_off_only_when_somebody_says_so_and_that_shows():
    with Live(gate=False, gate_threshold=1e-9) as server:
        assert server.form("/v1/swap", SOURCE, TARGET).status == 200
        assert server.get("/readyz").json["trust"]["gate"] == "off"
        assert 'ember_gate_enabled{gate="content"} 0.0' in server.get("/metrics").body.decode()


@pytest.mark.parametrize(("photo", "as_"), [(HOPPER, "source"), (COLLINS, "target")])
def test_who_is_on_the_deny_list_is_neither_source_nor_target(tmp_path, photo, as_):
    place = listed(tmp_path, photo, "deny", "add", "--reason", "asked for it")
    with accounted(tmp_path / "audit", deny_list=place) as server:
        told = server.form("/v1/swap", SOURCE, TARGET).problem("refused_identity", 422)
        assert as_ not in told["detail"]
        assert "asked" not in str(told)
        assert server.form("/v1/swap", ("source", COLLINS), ("target", COLLINS)).status == (
            422 if as_ == "target" else 200
        )
        assert server.lines("refusal")[0]["verdicts"]["deny_list"].startswith("refused")


def test_only_who_has_agreed_is_a_source(tmp_path):
    place = listed(
        tmp_path, HOPPER, "consent", "add", "--subject", "grace", "--until", "2099-01-01"
    )
    with Live(consent_list=place, sources="enrolled") as server:
        assert server.form("/v1/swap", SOURCE, TARGET).status == 200
        server.form("/v1/swap", ("source", COLLINS), TARGET).problem("refused_identity", 422)


@pytest.fixture(scope="module")
def stated(tmp_path_factory):
    with accounted(tmp_path_factory.mktemp("audit"), consent="stated") as server:
        yield server


def test_who_agrees_has_to_be_said_where_that_is_wanted(stated):
    assert stated.get("/readyz").json["trust"]["consent"] == "stated"
    told = stated.form("/v1/swap", SOURCE, TARGET).problem("consent_required", 422)
    assert told["field"] == "consent"
    assert stated.lines("refusal")[-1]["code"] == "consent_required"
    words = "Grace agrees, says Ann"
    assert stated.form("/v1/swap", SOURCE, TARGET, ("consent", words, None, None)).status == 200
    digest = stated.lines("swap")[-1]["consent"]
    assert len(digest) == 64
    assert stated.form("/v1/swap", SOURCE, TARGET, Ember_Consent=words).status == 200
    assert stated.lines("swap")[-1]["consent"] == digest


def test_a_job_that_does_not_say_it_is_not_made(stated):
    name, before = new_id(), len(stated.lines("refusal"))
    put(stated, name, SOURCE, TARGET).problem("consent_required", 422)
    assert stated.get(f"/v1/jobs/{name}").status == 404
    assert len(stated.lines("refusal")) == before + 1


def test_a_job_keeps_who_agrees(stated):
    name = new_id()
    put(stated, name, SOURCE, TARGET, **{"Ember-Consent": "Grace agrees"})
    assert finished(stated, name)["state"] == "succeeded"
    assert stated.lines("swap")[-1]["entry"] == "job"
    assert stated.lines("swap")[-1]["consent"]
