"""A swap of several people: each is looked up, each agrees, and the audit says who went where."""

from __future__ import annotations

import hashlib
import json

import pytest

from function.trust.audit.find import WantedPicture, find
from function.trust.audit.keyring import KEYLESS
from function.trust.audit.line import AuditFile
from tests.function.http.test_people import PAIR, TARGET, source
from tests.function.live import COLLINS, HOPPER, Live
from tests.function.trust.conftest import accounted
from tests.function.trust.gate.test_consent import KEY, pem, token
from tests.function.trust.test_refusals import listed

BOTH = (source("h"), source("c", COLLINS), TARGET)
MAP = ("faces", "0=h,1=c")


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def signing(tmp_path_factory):
    """A server that wants signed consent and writes an audit without a key."""
    place = tmp_path_factory.mktemp("signed")
    (place / "consent.pem").write_bytes(pem(KEY))
    keys = place / "consent.pem"
    with accounted(place / "audit", consent="signed", consent_keys=keys) as server:
        yield server


@pytest.fixture(scope="module")
def line(signing):
    """What the audit says of a swap of two people, of whom each has a token."""
    tokens = {
        "h": token(purpose="for hopper", photos=[sha(HOPPER)]),
        "c": token(purpose="for collins", photos=[sha(COLLINS)]),
    }
    consent = " ".join(f"{name}={each}" for name, each in tokens.items())
    parts = (*BOTH, source("x", HOPPER, "likes"), ("faces", "0=h,x=c"), ("consent", consent))
    assert signing.form("/v1/swap", *parts, Ember_Request_Id="both").status == 200
    (found,) = [each for each in signing.lines("swap") if each["request"] == "both"]
    return found


def test_a_line_says_who_was_put_onto_which_face_and_who_agreed(line):
    assert line["people"] == [
        {"sources": [sha(HOPPER)], "faces": [0], "consent": sha(b"for hopper")},
        {"sources": [sha(COLLINS)], "faces": [1], "consent": sha(b"for collins")},
    ]
    assert line["sources"] == [sha(HOPPER), sha(COLLINS)]
    assert (line["references"], line["target"]) == ([sha(HOPPER)], sha(PAIR))
    assert not {"consent", "reference"} & line.keys()


@pytest.mark.parametrize(
    ("data", "by"),
    [(COLLINS, "source"), (PAIR, "target"), (b"for collins", "consent"), (b"", None)],
)
def test_a_line_is_found_by_each_of_its_people(line, data, by):
    file = AuditFile("", "a", [json.dumps(line).encode()], pure=False)
    found = [match.by for match in find(file, WantedPicture.of(data, (KEYLESS,)), (KEYLESS,))]
    assert found == ([by] if by else [])


@pytest.mark.parametrize(
    "consent",
    [
        token,
        lambda: f"h={token()}",
        lambda: f"h={token()} c={token(photos=[sha(HOPPER)])}",
        lambda: "both agree",
    ],
)
def test_nobody_is_put_in_by_the_consent_of_another(signing, consent):
    before = len(signing.lines("swap"))
    signing.form("/v1/swap", *BOTH, MAP, ("consent", consent())).problem("consent_required", 422)
    assert len(signing.lines("swap")) == before
    (*_, refusal) = signing.lines("refusal")
    assert [each["sources"] for each in refusal["people"]] == [[sha(HOPPER)], [sha(COLLINS)]]


def test_each_of_several_people_is_looked_up(tmp_path):
    denied = listed(tmp_path, COLLINS, "deny", "add", "--reason", "asked for it")
    with Live(deny_list=denied) as server:
        server.form("/v1/swap", *BOTH, ("faces", "1=h,0=c")).problem("refused_identity", 422)
        alone = (source("h"), TARGET, ("faces", "1=h"))
        assert server.form("/v1/swap", *alone).status == 200


def test_each_of_several_people_has_to_be_enrolled(tmp_path):
    words = ("consent", "add", "--subject", "grace", "--until", "2099-01-01")
    with Live(consent_list=listed(tmp_path, HOPPER, *words), sources="enrolled") as server:
        server.form("/v1/swap", *BOTH, MAP).problem("refused_identity", 422)
        twice = (source("h"), source("g"), TARGET, ("faces", "0=h,1=g"))
        assert server.form("/v1/swap", *twice).status == 200
