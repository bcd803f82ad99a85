"""Everything that parses what comes from outside: it gives a value or its own error, no other."""

from __future__ import annotations

import base64
import json
import math
from contextlib import suppress
from datetime import UTC, datetime

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function import jsontext
from function.admission.caller import Caller, RejectedError
from function.admission.jwks import KeySet
from function.admission.keys import ApiKeys
from function.admission.tokens import Tokens
from function.background.events.rules import options_of
from function.faces.select import Selection
from function.http import accept, multipart
from function.problems import Problem
from function.storage.storage import Storage
from function.telemetry.trace_context import TraceContext
from tests.function.admission.test_tokens import AUDIENCE, ISSUER, RSA, public
from warmup.objects import gs_uri
from warmup.objects.errors import RefusedError
from warmup.objects.urls import exact
from warmup.objects.web import checked
from warmup.retry import retry_after

calm = settings(max_examples=200, deadline=None, derandomize=True)

ANY = st.text(max_size=80)  # with halves of characters, control characters and all
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY, inner, max_size=4),
    max_leaves=8,
)
DEEP = [b"[" * 100_000, b'{"a":' * 100_000, b"1e999", b"9" * 5000, b"NaN"]


@calm
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_json_is_what_can_be_written_again_or_refused(text):
    with suppress(ValueError):
        json.dumps(jsontext.parse(text), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    "text", [*DEEP, b'"\\ud800"', b'{"\\uDfff": 1}', b"\xff", b"", b"\xef\xbb\xbf1"]
)
def test_json_that_is_none_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 (any is fine)
        jsontext.parse(text)


@pytest.mark.parametrize(("start", "end"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
def test_json_is_no_deeper_than_what_walks_through_it_can_go(start, end):
    deepest = jsontext.DEPTH // (start.count(b"[") + start.count(b"{"))
    assert jsontext.parse(start * deepest + b"1" + end * deepest)
    assert jsontext.parse(b"[" + b",".join([start + b"1" + end] * 200) + b"]")  # many, and flat
    with pytest.raises(ValueError, match="deeply"):
        jsontext.parse(start * (deepest + 1) + b"1" + end * (deepest + 1))


def test_json_has_every_character_and_number_that_there_is():
    value = {"😀": ["\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), 1e308, -5]}
    for ascii_ in (True, False):
        assert jsontext.parse(json.dumps(value, ensure_ascii=ascii_).encode()) == value


def token(header, payload, signature=b"x"):
    """Three parts, whatever is in them."""
    parts = (header, payload, signature)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def authority(document=None):
    async def fetch():
        return json.dumps({"keys": [public(RSA, "k")]}).encode() if document is None else document

    return Tokens(KeySet(fetch), ISSUER, AUDIENCE, 30.0, "tier", "lane")


@calm
@given(
    ANY
    | st.tuples(st.binary(max_size=40), st.binary(max_size=40)).map(lambda two: token(*two))
    | st.tuples(JSON, JSON).map(lambda two: token(*(json.dumps(part).encode() for part in two)))
    | st.sampled_from([token(deep[:12_000], b"{}") for deep in DEEP])
    | st.sampled_from([token(b'{"alg":"RS256","kid":"k"}', deep[:9000]) for deep in DEEP])
)
async def test_what_is_no_token_is_rejected(credentials):
    with pytest.raises(RejectedError):
        await authority().caller(credentials)


@calm
@given(
    JSON, st.sampled_from(["sub", "tier", "lane", "email", "email_verified", "exp", "aud", "iss"])
)
async def test_whatever_an_issuer_signs_is_a_caller_or_rejected(value, name):
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": 2**33,
        "sub": "ann",
        "email": "a@b",
        name: value,
    }
    with suppress(RejectedError, TypeError, ValueError):  # some cannot even be signed
        signed = jwt.encode(claims, RSA, "RS256", {"kid": "k"})
        caller = await authority().caller(signed)
        assert isinstance(caller, Caller)
        assert caller.email is None or claims.get("email_verified") is True


@calm
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps({"keys": value}).encode()))
async def test_a_document_without_keys_is_logged(document):
    with pytest.raises(Problem) as raised:
        await authority(document).caller(token(b'{"alg":"RS256"}', b"{}"))
    assert raised.value.code == "auth_unavailable"


@calm
@given(credentials=ANY.filter(str.isascii))
async def test_what_is_no_key_is_rejected(credentials, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "no-keys"
    path.touch()
    with pytest.raises(RejectedError):
        await ApiKeys(path).caller(credentials)


@calm
@given(ANY, ANY)
def test_a_place_in_a_trace_is_one_that_can_be_passed_on(parent, state):
    good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for each in (parent, good + parent, good):
        if found := TraceContext.parse(each, state):
            assert all(value.isascii() and value.isprintable() for value in found.headers.values())


@calm
@given(ANY | st.integers().map(str) | st.sampled_from(["²", "9" * 400, "-1", "Mon, 99 Jan 99999"]))
def test_whatever_a_server_asks_to_wait_is_a_number(text):
    seconds = retry_after(text, datetime(2026, 1, 1, tzinfo=UTC))
    assert 0 <= seconds < math.inf


@calm
@given(st.lists(ANY, max_size=3), st.floats())
def test_what_is_accepted_has_a_weight(headers, quality):
    offers = ["image/jpeg", "application/json"]
    wishes = accept.parse([*headers, f"image/jpeg;q={quality}"])
    assert all(0 <= wish.quality <= 1 for wish in wishes)
    with suppress(Problem):
        assert accept.best(wishes, offers) in offers


@calm
@given(st.binary(max_size=200), st.sampled_from(["b", "", "x" * 71, "é"]))
def test_a_form_is_parts_or_a_bad_request(body, boundary):
    head = b"--b\r\nContent-Disposition: form-data; "
    for each in (body, head + body, head + body + b"\r\n\r\nx\r\n--b--"):
        try:
            assert all(isinstance(part.name, str) for part in multipart.parse(each, boundary))
        except Problem as problem:
            code = problem.code
        else:
            code = "bad_request"
        assert code == "bad_request"


@calm
@given(ANY)
def test_every_uri_is_refused_or_asked_for_as_it_is(text):
    for each in (text, f"https://h/{text}", f"https://{text}/x", f"gs://b/{text}", f"gs://{text}"):
        with suppress(RefusedError):
            assert str(checked(each)).isascii()
        with suppress(RefusedError):
            bucket, name, _ = gs_uri.parse(each)
            assert gs_uri.parse(gs_uri.uri(bucket, name))[:2] == (bucket, name)
        with suppress(ValueError):
            assert str(exact(each)).isascii()


@calm
@given(text=ANY, scheme=st.sampled_from(["", "file", "data", "https", "http", "gs", "ftp"]))
async def test_storage_reads_no_uri_that_makes_no_sense(tmp_path_factory, text, scheme):
    storage = Storage(folders=(tmp_path_factory.getbasetemp(),), timeout_s=5.0)
    if scheme in {"https", "http", "gs"}:
        text = f"//\x00{text}"  # nothing that could be connected to
    with suppress(Problem):
        found = await storage.read(f"{scheme}:{text}", 1000)
        assert len(found.data) <= 1000
    await storage.close()


@calm
@given(JSON, JSON, JSON)
def test_a_sidecar_file_says_what_is_possible_or_is_refused(faces, kind, quality):
    found = {"faces": faces, "format": kind, "quality": quality}
    with suppress(Problem):
        options = options_of(found)
        assert options.quality is None or 1 <= options.quality <= 100


@calm
@given(ANY | ANY.map(lambda text: f"index:{text}") | st.lists(st.integers(), max_size=4).map(
    lambda several: "index:" + ",".join(map(str, several))
))  # fmt: skip
def test_a_selection_is_one_or_a_bad_value(text):
    try:
        Selection.parse(text)
    except Problem as problem:
        assert problem.code in {"bad_value", "missing_field"}  # noqa: PT017
