"""Multipart and JSON bodies, mutated at random: never a failure of the server, never a hang."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function.problems import KINDS
from tests.function.live import BOUNDARY, FORM, JSON, NOBODY, multipart

BODY = multipart(("source", NOBODY), ("target", NOBODY), ("faces", "all"), ("quality", "80"))
DOCUMENT = json.dumps({"source": ["data:,x"], "target": "data:,x", "quality": 80}).encode()
PIECES = [
    b"\r\n",
    b"\r\n\r\n",
    b"--",
    b"--" + BOUNDARY.encode(),
    b"--" + BOUNDARY.encode() + b"--\r\n",
    b'Content-Disposition: form-data; name="source"',
    b"Content-Disposition: form-data; name*=utf-8''%ff",
    b"Content-Type: ",
    b"Content-Transfer-Encoding: base64\r\n",
    b"filename*0=a; filename*1=b",
    b'"',
    b"\\",
    b"\x00",
    b"\xff\xfe",
    "\u2028\x85".encode(),
    b"=?utf-8?b?////?=",
    b"{",
    b"[",
    b",",
    b'"a":',
    b"\\ud800",
    b"1e999",
    b"NaN",
]
calm = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def mutations(body):
    """Cut, repeat, replace and insert at random places."""
    place = st.integers(0, len(body))
    step = st.tuples(place, place, st.sampled_from(PIECES) | st.binary(max_size=20) | st.none())

    def apply(steps):
        changed = body
        for *ends, piece in steps:
            start, end = sorted(ends)
            middle = changed[start:end] * 2 if piece is None else piece
            changed = changed[:start] + middle + changed[end if end - start < 40 else start :]
        return changed

    return st.lists(step, min_size=1, max_size=5).map(apply)


def check(answer):
    members = answer.json
    assert answer.media_type == "application/problem+json"
    assert 400 <= answer.status == KINDS[members["code"]].status < 500, members


@calm
@given(body=mutations(BODY))
def test_a_mutated_form_is_answered_with_a_problem(live, body):
    check(live.send("POST", "/v1/swap", body, FORM))


@calm
@given(body=mutations(DOCUMENT))
def test_mutated_json_is_answered_with_a_problem(live, body):
    check(live.send("POST", "/v1/swap", body, JSON))


header = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60
)


@calm
@given(
    content_type=header | header.map(lambda text: "multipart/form-data; boundary" + text),
    accept=header,
    request_id=header,
    encoding=st.sampled_from(["identity", "gzip", ""]) | header,
    name=st.sampled_from(
        ["Authorization", "Origin", "Prefer", "Range", "If-Range", "If-None-Match", "Via", "Cookie",
         "Request-Timeout", "Ember-Lane", "Ember-Ping", "Last-Event-ID", "Idempotency-Key",
         "traceparent", "tracestate", "Expect", "Forwarded"]
    ),
    value=header,
)  # fmt: skip
def test_any_headers_are_answered_with_a_problem(
    live, content_type, accept, request_id, encoding, name, value
):
    headers = {
        name: value,
        "Content-Type": content_type,
        "Accept": accept,
        "X-Request-Id": request_id,
        "Content-Encoding": encoding,
    }
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    check(live.send("POST", "/v1/swap", BODY, encoded))
