"""JSON Web Tokens against a real issuer: a small HTTP server that publishes real keys."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from function.admission.caller import Caller, RejectedError
from function.admission.jwks import FRESH_S, LAST_S, PAUSE_S, KeySet, fetcher
from function.admission.tokens import Tokens
from function.problems import Problem

ISSUER, AUDIENCE = "https://issuer.example", "ember"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NEXT = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


def public(key, kid, **more):
    kind = {
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    algorithm = next(made for type_, made in kind.items() if isinstance(key, type_))
    return algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": kid} | more


class Issuer:
    """Publishes `keys`, counts how often it is asked, and may be out of order."""

    def __init__(self):
        self.keys, self.asked, self.status, self.pause_s = [], 0, 200, 0.0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.asked += 1
                time.sleep(issuer.pause_s)
                body = json.dumps({"keys": issuer.keys}).encode()
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"

    @contextmanager
    def serving(self):
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def issuer():
    with Issuer().serving() as issuer:
        issuer.keys = [public(RSA, "one"), public(CURVE, "curve"), public(EDWARDS, "ed")]
        yield issuer


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens(issuer, clock):
    keys = KeySet(fetcher(issuer.url), clock)
    return Tokens(keys, ISSUER, AUDIENCE, leeway_s=30, tier_claim="tier", lane_claim="lane")


def claims(**changes):
    usual = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60}
    return {name: value for name, value in (usual | changes).items() if value is not None}


def signed(key=RSA, algorithm="RS256", kid="one", **changes):
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key, algorithm, headers)


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (RSA, "RS256", "one"),
        (RSA, "PS512", "one"),
        (CURVE, "ES256", "curve"),
        (EDWARDS, "EdDSA", "ed"),
    ],
)
async def test_a_good_token_says_who_calls(tokens, key, algorithm, kid):
    token = signed(key, algorithm, kid, tier="paid", lane="bulk")
    assert await tokens.caller(token) == Caller("ann", "paid", "bulk")
    assert await tokens.caller(signed(key, algorithm, kid)) == Caller("ann")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": time.time() - 100}, "expired"),
        ({"exp": None}, "lacks"),
        ({"nbf": time.time() + 1000}, "not valid yet"),
        ({"aud": "another"}, "audience"),
        ({"aud": None}, "lacks"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"iss": None}, "lacks"),
        ({"sub": None}, "lacks"),
        ({"sub": ""}, "subject"),
        ({"sub": "two words"}, "subject"),
        ({"sub": "x" * 256}, "subject"),
        ({"tier": ["paid"]}, "tier"),
        ({"lane": 1}, "lane"),
    ],
)
async def test_a_token_with_other_claims_is_rejected_with_the_reason(tokens, changes, reason):
    with pytest.raises(RejectedError, match=reason):
        await tokens.caller(signed(**changes))


async def test_clocks_may_differ_by_the_leeway(tokens):
    assert await tokens.caller(signed(exp=time.time() - 20)) == Caller("ann")
    with pytest.raises(RejectedError):
        await tokens.caller(signed(exp=time.time() - 40))


async def test_an_unsigned_token_is_rejected(tokens):
    token = jwt.encode(claims(), None, "none", {"kid": "one"})
    with pytest.raises(RejectedError):
        await tokens.caller(token)


@pytest.mark.parametrize("form", [PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1])
async def test_a_public_key_is_never_a_secret(tokens, form):
    """The classic confusion: HMAC with the public key, which everybody has, as the secret."""
    import base64
    import hashlib
    import hmac

    secret = RSA.public_key().public_bytes(Encoding.PEM, form)
    parts = ({"alg": "HS256", "typ": "JWT", "kid": "one"}, claims())
    head = b".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    mark = base64.urlsafe_b64encode(hmac.new(secret, head, hashlib.sha256).digest()).rstrip(b"=")
    with pytest.raises(RejectedError):
        await tokens.caller((head + b"." + mark).decode())


async def test_a_secret_among_the_issuers_keys_is_no_key(issuer, tokens):
    secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"
    issuer.keys.append({"kty": "oct", "k": secret, "kid": "secret", "alg": "HS256"})
    raw = b"secret-secret-secret-secret-secret"
    with pytest.raises(RejectedError):
        await tokens.caller(signed(raw, "HS256", "secret"))


async def test_a_key_serves_only_the_algorithm_and_the_use_that_it_names(issuer, tokens):
    issuer.keys = [public(RSA, "one", alg="RS512"), public(NEXT, "two", use="enc")]
    assert await tokens.caller(signed(algorithm="RS512"))
    with pytest.raises(RejectedError):
        await tokens.caller(signed(algorithm="RS256"))
    with pytest.raises(RejectedError):
        await tokens.caller(signed(NEXT, kid="two"))


async def test_the_signature_of_another_key_is_rejected(tokens):
    with pytest.raises(RejectedError, match="signature"):
        await tokens.caller(signed(NEXT))


@pytest.mark.parametrize("text", ["", "a.b.c", "x" * 20000, "e30.e30.", "ü.ü.ü"])
async def test_what_is_no_token_is_rejected(tokens, text):
    with pytest.raises(RejectedError):
        await tokens.caller(text)


async def test_keys_are_fetched_once_however_many_ask(issuer, tokens):
    issuer.pause_s = 0.1
    callers = await asyncio.gather(*(tokens.caller(signed()) for _ in range(20)))
    assert callers == [Caller("ann")] * 20
    assert issuer.asked == 1


async def test_a_new_key_is_found_and_an_old_one_is_gone(issuer, tokens, clock):
    assert await tokens.caller(signed())
    issuer.keys = [public(NEXT, "two")]
    clock.now += PAUSE_S + 1
    assert await tokens.caller(signed(NEXT, kid="two"))
    with pytest.raises(RejectedError):
        await tokens.caller(signed())


async def test_made_up_keys_do_not_become_a_flood_at_the_issuer(issuer, tokens, clock):
    assert await tokens.caller(signed())
    for number in range(50):
        clock.now += 1
        with pytest.raises(RejectedError):
            await tokens.caller(signed(kid=f"made-up-{number}"))
    assert issuer.asked <= 1 + 50 / PAUSE_S


async def test_known_keys_are_renewed_without_anybody_waiting(issuer, tokens, clock):
    assert await tokens.caller(signed())
    issuer.keys, issuer.pause_s = [public(NEXT, "two")], 0.3
    clock.now += FRESH_S + 1
    assert await tokens.caller(signed())
    await tokens.keys._refresh
    assert await tokens.caller(signed(NEXT, kid="two"))
    assert issuer.asked == 2


async def test_a_token_without_a_key_id_is_checked_with_the_only_key(issuer, tokens, clock):
    with pytest.raises(RejectedError):
        await tokens.caller(signed(kid=None))
    issuer.keys = [public(RSA, "one")]
    clock.now += PAUSE_S + 1
    assert await tokens.caller(signed(kid=None))


async def test_known_keys_stay_good_for_a_day_without_the_issuer(issuer, tokens, clock):
    assert await tokens.caller(signed())
    issuer.status = 500
    clock.now += LAST_S - 10
    assert await tokens.caller(signed())
    clock.now += 20
    with pytest.raises(Problem) as raised:
        await tokens.caller(signed())
    assert raised.value.code == "auth_unavailable"
    await asyncio.gather(tokens.keys._refresh, return_exceptions=True)


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_without_any_keys_it_says_that_it_cannot_check(issuer, tokens, clock, status):
    issuer.status = status
    with pytest.raises(Problem) as raised:
        await tokens.caller(signed())
    assert raised.value.code == "auth_unavailable"
    assert int(raised.value.headers["Retry-After"]) >= 1
    issuer.status = 200
    clock.now += PAUSE_S + 1
    assert await tokens.caller(signed())


async def test_an_issuer_that_cannot_be_reached_is_no_crash(clock):
    keys = KeySet(fetcher("http://127.0.0.1:9/keys"), clock)
    with pytest.raises(Problem) as raised:
        await keys.find("one")
    assert raised.value.code == "auth_unavailable"
