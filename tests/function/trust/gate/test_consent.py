"""What requests say of consent, in words and in tokens."""

from __future__ import annotations

import hashlib
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from function.trust.gate.consent import ConsentKind, ConsentPolicy
from function.trust.gate.consent_tokens import SignedConsent
from function.trust.gate.verdict import GateRefusedError
from warmup.settings.variables import SettingsError

KEY = ed25519.Ed25519PrivateKey.generate()
OTHER = ed25519.Ed25519PrivateKey.generate()
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
OFF, STATED, SIGNED = ConsentKind


def pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def token(key=KEY, algorithm="EdDSA", headers=None, **claims):
    usual = {"sub": "actor 7", "exp": time.time() + 3600, "iss": "studio", "purpose": "a trailer"}
    content = {name: value for name, value in (usual | claims).items() if value is not None}
    return jwt.encode(content, key, algorithm, headers)


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "consent.pem"
    path.write_bytes(pem(KEY))
    return ConsentPolicy(SIGNED, SignedConsent.of(path))


def refused(policy, given, *args):
    with pytest.raises(GateRefusedError) as caught:
        policy.check(given, *args)
    assert caught.value.code == "consent_required"
    assert caught.value.extra["field"] == "consent"
    return caught.value.detail


class TestWords:
    def test_words_are_kept_with_their_digest(self):
        found = ConsentPolicy(STATED).check("  Ada agreed  ")
        assert (found.kind, found.text) == (STATED, "Ada agreed")
        assert found.digest == hashlib.sha256(b"Ada agreed").hexdigest()

    @pytest.mark.parametrize("given", [None, "", "   "])
    def test_nothing_is_no_consent(self, given):
        assert "who agrees" in refused(ConsentPolicy(STATED), given)
        assert ConsentPolicy().check(given) is None

    def test_what_is_said_without_being_asked_is_kept(self):
        assert ConsentPolicy().check("Ada agreed").text == "Ada agreed"

    def test_a_novel_is_too_long(self):
        assert "500" in refused(ConsentPolicy(STATED), "x" * 501)
        assert ConsentPolicy(STATED).check("x" * 500)

    @pytest.mark.parametrize(
        ("all_", "tier", "asks"),
        [(OFF, STATED, True), (OFF, OFF, False), (STATED, OFF, True), (OFF, None, False)],
    )
    def test_the_stricter_of_deployment_and_tier_holds(self, all_, tier, asks):
        if asks:
            refused(ConsentPolicy(all_), None, tier)
        else:
            assert ConsentPolicy(all_).check(None, tier) is None

    def test_half_of_a_character_is_no_word(self):
        assert "half of a character" in refused(ConsentPolicy(), "Ada \ud800")

    def test_words_do_not_do_where_a_token_is_asked_for(self, policy):
        assert "signed token" in refused(policy, "Ada agreed")


class TestTokens:
    def test_a_good_token_says_who_agrees_to_what(self, policy):
        found = policy.check(token())
        facts = (found.kind, found.subject, found.issuer, found.text)
        assert facts == (SIGNED, "actor 7", "studio", "a trailer")

    def test_it_does_for_what_asks_for_words(self, policy):
        assert ConsentPolicy(STATED, policy.tokens).check(token()).kind is SIGNED

    @pytest.mark.parametrize(
        ("made", "says"),
        [
            (lambda: token(exp=time.time() - 60), "expired"),
            (lambda: token(OTHER), "cannot be accepted"),
            (lambda: token(exp=None), "cannot be accepted"),
            (lambda: token(sub=None), "cannot be accepted"),
            (lambda: token(nbf=time.time() + 900), "cannot be accepted"),
            (lambda: token("secret" * 8, "HS256"), "cannot be accepted"),
            (lambda: token(None, "none"), "cannot be accepted"),
            (lambda: token()[:-6] + "AAAAAA", "cannot be accepted"),
            (lambda: token(purpose="x" * 501), "no text of use"),
            (lambda: token(purpose=7), "no text of use"),
            (lambda: token(purpose="\ud800"), "no text of use"),
            (lambda: token(sub="\ud800"), "no text of use"),
            (lambda: token(note="x" * 9000), "too long"),
        ],
    )
    def test_any_other_is_refused_and_says_what_to_mend(self, policy, made, says):
        assert says in refused(policy, made())

    def test_a_token_may_be_for_certain_photos_only(self, policy):
        mine, other = b"my photo", b"another"
        bound = token(photos=[hashlib.sha256(mine).hexdigest()])
        assert policy.check(bound, None, {"": [mine]})
        for sources in ([other], [mine, other], []):
            assert "other photos" in refused(policy, bound, None, {"": sources})
        assert "other photos" in refused(policy, token(photos="all"), None, {"": [mine]})

    def test_of_several_people_each_has_a_token(self, policy):
        photos = {"a": [b"1", b"2"], "b": [b"3"]}
        own = {
            name: token(
                sub=f"actor {name}",
                purpose=f"film {name}",
                photos=[hashlib.sha256(each).hexdigest() for each in files],
            )
            for name, files in photos.items()
        }
        text = " ".join(f"{name}={each}" for name, each in own.items())
        found = policy.check(text, None, photos)
        assert (found.kind, found.text) == (SIGNED, "")
        said = {name: (each.subject, each.text) for name, each in found.each.items()}
        assert said == {"a": ("actor a", "film a"), "b": ("actor b", "film b")}
        for wrong, says in [
            (f"a={own['b']} b={own['a']}", "other photos"),
            (f"a={own['a']}", "`b` is in only one"),
            (f"{text} c={own['a']}", "`c` is in only one"),
            (own["a"], "a token of its own"),
            (token(), "a token of its own"),
            (f"a={own['a']} b=Ben agrees", "signed token"),
        ]:
            assert says in refused(policy, wrong, None, photos)

    def test_words_are_about_all_people(self):
        photos = {"a": [b"1"], "b": [b"2"]}
        found = ConsentPolicy(STATED).check("Anna and Ben agreed", None, photos)
        assert (found.text, found.each) == ("Anna and Ben agreed", {})

    @pytest.mark.parametrize(("key", "algorithm"), [(RSA, "PS256"), (EC, "ES256"), (KEY, "EdDSA")])
    def test_every_usual_kind_of_key_signs(self, tmp_path, key, algorithm):
        path = tmp_path / "key.pem"
        path.write_bytes(pem(key))
        tokens = SignedConsent.of(path)
        assert tokens.read(token(key, algorithm), []).subject == "actor 7"
        forged = token("public key as a secret".ljust(64), "HS512")
        with pytest.raises(ValueError, match="cannot be accepted"):
            tokens.read(forged, [])

    def test_of_a_key_set_the_key_that_the_token_names_counts(self, tmp_path):
        keys = [
            json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key())) | {"kid": name}
            for name, key in (("a", KEY), ("b", OTHER))
        ]
        path = tmp_path / "jwks.json"
        path.write_text(json.dumps({"keys": keys}))
        tokens = SignedConsent.of(path)
        assert tokens.read(token(headers={"kid": "a"}), [])
        for wrong in (token(headers={"kid": "b"}), token(headers={"kid": "c"}), token()):
            with pytest.raises(ValueError, match="consent"):
                tokens.read(wrong, [])

    @pytest.mark.parametrize(
        "content", [b"", b"{}", b'{"keys": []}', b"[]", b"-----BEGIN PUBLIC KEY-----\nAAAA\n"]
    )
    def test_a_file_without_a_public_key_is_no_start(self, tmp_path, content):
        path = tmp_path / "keys"
        path.write_bytes(content)
        with pytest.raises(SettingsError, match="EMBER_CONSENT_KEYS"):
            SignedConsent.of(path)
