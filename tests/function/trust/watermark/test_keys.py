"""Keys: what a file says, and what a mark says of a request."""

from __future__ import annotations

import pytest

from function.trust.watermark.keys import (
    PUBLIC,
    WatermarkKey,
    WatermarkKeys,
    key_id,
    read_keys,
    text,
)

A, B = "0f" * 16, "A1" * 32


@pytest.fixture
def file(tmp_path):
    def write(content: str):
        path = tmp_path / "keys"
        path.write_text(content)
        return path

    return write


def test_the_last_key_marks_and_all_are_read(file):
    keys = read_keys(file(f"# ours\n1 {B}\n\n2 {A} # since May\n"))
    assert keys.current == WatermarkKey(2, bytes.fromhex(A))
    assert [key.id for key in keys.readable] == [2, 1, 0]


def test_without_a_file_the_public_key_is_used():
    assert WatermarkKeys().current is PUBLIC
    assert WatermarkKeys().readable == (PUBLIC,)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "has no watermark key"),
        ("# nothing", "has no watermark key"),
        (f"1 {A[:-2]}", "line 1, is not a number and 32 to 128 hex digits"),
        (f"1 {A}g", "line 1, is not a number"),
        (f"one {A}", "line 1, is not a number"),
        (f"1 {A} more", "line 1, is not a number"),
        (f"1 {A}\n0 {B}", "line 2: a key's number is between 1 and 255"),
        (f"256 {A}", "between 1 and 255"),
        (f"1 {A}\n1 {B}", "line 2, has the number of an earlier line"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_without_its_secrets(file, content, complaint):
    with pytest.raises(ValueError, match=complaint) as refusal:
        read_keys(file(content))
    assert A[:10] not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_keys(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="it is not UTF-8"):
        read_keys(tmp_path / "bytes")


def test_a_payload_names_its_key_and_depends_on_key_and_request():
    key = WatermarkKey(0xA5, bytes.fromhex(A))
    payload = key.payload("request")
    assert key_id(payload) == 0xA5
    assert text(payload) == f"a5{payload & 2**40 - 1:010x}"
    assert (
        len({payload, key.payload("other"), WatermarkKey(0xA5, b"x" * 16).payload("request")}) == 3
    )


def test_a_payload_is_the_hmac_of_the_request():
    """RFC 4231, test case 2."""
    assert text(WatermarkKey(1, b"Jefe").payload("what do ya want for nothing?")) == "015bdcc146bf"


def test_no_secret_is_shown():
    assert "secret" not in repr(WatermarkKey(1, b"secret, secret!!"))
