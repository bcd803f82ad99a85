"""Who may send events, and what an event may decide."""

from __future__ import annotations

import json
import time

import jwt
import pytest

from function.admission import keys
from tests.function.admission.test_tokens import AUDIENCE, ISSUER, RSA, Issuer, public
from tests.function.live import COLLINS, Live

from . import forms
from .conftest import HERE
from .test_events import outcome, post

NOTIFIER = "notifier@project.iam.example"


def bearer(**claims):
    own = {"iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 600, "sub": "1234567"}
    return {"Authorization": "Bearer " + jwt.encode(own | claims, RSA, "RS256", {"kid": "k"})}


@pytest.fixture(scope="module")
def issuer():
    issuer = Issuer()
    issuer.keys = [public(RSA, "k")]
    with issuer.serving():
        yield issuer


@pytest.fixture(scope="module")
def guarded(cloud, rules, issuer):
    with Live(
        events=rules,
        uri_networks=HERE,
        auth="jwt",
        jwt_issuer=ISSUER,
        jwt_audience=AUDIENCE,
        jwt_jwks_url=issuer.url,
        event_senders=("1007", f"email:{NOTIFIER}"),
    ) as server:
        yield server


@pytest.fixture(scope="module")
def live(cloud, rules):
    with Live(events=rules, uri_networks=HERE) as server:
        yield server


class TestWhoMaySend:
    @pytest.mark.parametrize(
        "claims",
        [
            {"sub": "1007"},
            {"email": NOTIFIER, "email_verified": True},
            {"email": NOTIFIER.upper(), "email_verified": True},
        ],
    )
    def test_a_named_sender_may_send_events(self, guarded, cloud, claims):
        name = f"in/allowed-{len(str(claims))}.jpg"
        upload = cloud.upload(name)
        assert outcome(post(guarded, forms.binary(upload), **bearer(**claims))) == "done"

    @pytest.mark.parametrize(
        "claims",
        [
            {},
            {"sub": "10071"},
            {"email": NOTIFIER},
            {"email": NOTIFIER, "email_verified": False},
            {"email": NOTIFIER, "email_verified": "yes"},
            {"email": f"x{NOTIFIER}", "email_verified": True},
            {"email": ["1007"], "email_verified": True},
            {"email": "1007", "email_verified": True},
            {"sub": NOTIFIER},
            {"sub": f"email:{NOTIFIER}"},
            {"tier": "operator"},
        ],
    )
    def test_another_subject_of_the_same_issuer_may_not_send_events(self, guarded, cloud, claims):
        upload = cloud.upload("in/forged.jpg")
        answer = post(guarded, forms.binary(upload), **bearer(**claims))
        assert answer.problem("forbidden", 403)["setting"] == "EMBER_EVENT_SENDERS"
        assert cloud.output("in/forged.webp") is None

    def test_a_sender_is_refused_before_the_event_is_read(self, guarded):
        headers = {"Content-Type": "application/json"} | bearer()
        guarded.send("POST", "/", b"[", headers).problem("forbidden", 403)

    def test_a_sender_that_is_refused_may_still_call_the_api(self, guarded):
        answer = guarded.get("/v1/quota", **bearer())
        assert answer.status == 200

    @pytest.mark.parametrize("sent", ["Bearer \xff", "Bearer \u20ac".encode(), "Bearer " + "[" * 9])
    def test_a_sender_without_valid_credentials_is_401(self, guarded, cloud, sent):
        upload = cloud.upload("in/nobody.jpg")
        answer = post(guarded, forms.binary(upload), Authorization=sent)
        answer.problem("unauthenticated", 401)

    def test_without_named_senders_nobody_with_a_key_may_send_events(self, cloud, rules, tmp_path):
        key, line = keys.new("ann", "operator")
        (tmp_path / "keys").write_text(line)
        upload = cloud.upload("in/key.jpg")
        sent = {"Authorization": f"Bearer {key}"}
        changes = {"events": rules, "auth": "keys", "keys": tmp_path / "keys"}
        with Live(**changes) as server:
            post(server, forms.binary(upload), **sent).problem("forbidden", 403)
        with Live(**changes, event_senders=("ann",)) as server:
            assert outcome(post(server, forms.binary(upload), **sent)) == "done"


class TestWhatAnEventDecides:
    """With one who may send, and who lies."""

    def test_metadata_in_an_event_do_not_count_where_the_storage_has_them(self, live, cloud):
        upload = cloud.upload("named/bare.jpg")
        forged = upload | {"metadata": {"source": "hopper"}}
        assert outcome(post(live, forms.binary(forged))) == "ignored"
        assert outcome(post(live, forms.pushed(forged))) == "ignored"
        assert cloud.output("swapped/named/bare.jpg", cloud.uploads) is None

    def test_the_mark_of_an_output_in_an_event_does_not_count(self, live, cloud):
        copied = cloud.upload("in/unmarked.jpg", **{"ember-of": "uploads/in/x.jpg#1"})
        forged = {key: value for key, value in copied.items() if key != "metadata"}
        assert outcome(post(live, forms.binary(forged))) == "ignored"

    def test_an_event_with_the_id_of_another_does_not_make_that_one_a_duplicate(self, live, cloud):
        genuine, other = cloud.upload("in/genuine.jpg"), cloud.upload("in/other.jpg")
        id_ = "an-id-that-can-be-guessed"
        source = {"source": "//storage.googleapis.com/projects/_/buckets/uploads"}
        assert outcome(post(live, forms.binary(other, id=id_, **source))) == "done"
        assert outcome(post(live, forms.binary(genuine, id=id_, **source))) == "done"
        assert outcome(post(live, forms.binary(genuine, id=id_, **source))) == "duplicate"

    def test_an_event_about_a_missing_upload_does_not_use_its_id_up(self, live, cloud):
        genuine = cloud.upload("in/later.jpg")
        missing = forms.resource("uploads", "in/never.jpg", 3)
        post(live, forms.binary(missing, id="i", source="s")).problem("object_not_found", 422)
        assert outcome(post(live, forms.binary(genuine, id="i", source="s"))) == "done"


RULES = """
[[rule]]
name = "photos"
bucket = "uploads"
prefix = "typed/"
content_type = "image/*"
metadata = { kind = "portrait" }
source = "gs://photos/sources/hopper.jpg"
output = "gs://swapped/{name}"
"""


@pytest.fixture(scope="module")
def asking(cloud, tmp_path_factory):
    path = tmp_path_factory.mktemp("asking") / "events.toml"
    path.write_text(RULES)
    with Live(events=path) as server:
        yield server


class TestARuleThatAsksForMoreThanAName:
    def test_a_rule_that_asks_for_metadata_gets_those_of_the_storage(self, asking, cloud):
        upload = cloud.upload("typed/a.jpg", kind="portrait")
        assert outcome(post(asking, forms.pushed(upload, payload=False))) == "done"
        other = cloud.upload("typed/b.jpg", kind="landscape")
        assert outcome(post(asking, forms.binary(other))) == "ignored"

    @pytest.mark.parametrize("form", ["binary", "pushed", "pushed without payload"])
    def test_a_missing_upload_is_reported_though_the_rule_asks_for_metadata(self, asking, form):
        missing = forms.resource("uploads", f"typed/{form}.jpg", 4)
        answer = post(asking, forms.ALL[form](missing))
        answer.problem("object_not_found", 422)
        assert outcome(answer) == "failed"

    def test_an_upload_that_was_done_before_it_was_deleted_is_a_duplicate(self, asking, cloud):
        upload = cloud.upload("typed/deleted.jpg", kind="portrait")
        assert outcome(post(asking, forms.binary(upload))) == "done"
        cloud.uploads.blob("typed/deleted.jpg").delete()
        assert outcome(post(asking, forms.binary(upload))) == "duplicate"


def test_what_names_no_upload_or_cannot_be_read_goes_to_the_dead_letters(rules):
    with Live(events=rules) as server:
        for request in (
            forms.binary(forms.resource("uploads", "in/a.jpg") | {"name": ""}, subject="x"),
            forms.pushed(forms.resource("", "")),
            (forms.binary(forms.resource("uploads", "a"))[0], b"[" * 100_000),
            (forms.binary(forms.resource("uploads", "a"))[0], COLLINS),
            ({}, json.dumps({"message": {"messageId": "1", "data": "W1tb"}}).encode()),
        ):
            answer = post(server, request)
            answer.problem("bad_event", 400)
