"""Bodies: how large, how slow, how encoded they may be, and what becomes of the connection."""

from __future__ import annotations

import gzip
import socket
import time

import pytest

from tests.function.live import FORM, HOPPER, JSON, Live, multipart
from tests.function.raw import closed, connection, head, read_answer

LIMIT = 300_000
GOOD = multipart(("image", HOPPER))
TOO_LARGE = multipart(("image", bytes(LIMIT)))


@pytest.fixture(scope="module")
def small():
    with Live(max_body_bytes=LIMIT, body_timeout_s=1.5) as server:
        yield server


def chunked(body, size=50_000):
    for start in range(0, len(body), size):
        chunk = body[start : start + size]
        yield b"%x\r\n" % len(chunk) + chunk + b"\r\n"
    yield b"0\r\n\r\n"


def length(body):
    return {"Content-Length": len(body)}


CHUNKED = FORM | {"Transfer-Encoding": "chunked"}


def test_an_announced_length_is_refused_before_the_body_comes(small):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", FORM | length(TOO_LARGE)))
        members = read_answer(client).problem("body_too_large", 413)
    assert (members["limit"], members["value"]) == (LIMIT, len(TOO_LARGE))
    assert "EMBER_MAX_BODY_BYTES" in members["detail"]


def test_a_chunked_body_is_refused_as_soon_as_it_is_too_large(small):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", CHUNKED))
        sent = 0
        for chunk in chunked(bytes(50 * LIMIT)):
            try:
                client.sendall(chunk)
            except OSError:
                break
            sent += len(chunk)
            client.setblocking(False)
            try:
                if client.recv(1, socket.MSG_PEEK):
                    break
            except BlockingIOError:
                pass
            finally:
                client.settimeout(20)
        answer = read_answer(client)
    members = answer.problem("body_too_large", 413)
    assert LIMIT < members["value"] < 3 * LIMIT
    assert sent < 50 * LIMIT
    assert answer.headers["Connection"] == "close"


def test_a_body_of_exactly_the_limit_is_read(small):
    body = GOOD + bytes(LIMIT - len(GOOD))
    assert len(body) == LIMIT
    assert small.send("POST", "/v1/faces", body, FORM).status == 200
    small.send("POST", "/v1/faces", body + b"x", FORM).problem("body_too_large", 413)


def test_a_client_that_sends_on_still_gets_its_413(small):
    assert small.send("POST", "/v1/faces", bytes(20 * LIMIT), FORM).status == 413


def test_a_chunked_body_is_read(small):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", CHUNKED) + b"".join(chunked(GOOD, 777)))
        assert read_answer(client).status == 200


def test_continue_is_said_only_when_the_body_is_wanted(small):
    expect = FORM | {"Expect": "100-continue"}
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", expect | length(GOOD)))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(GOOD)
        assert read_answer(client).status == 200


@pytest.mark.parametrize(
    ("path", "changes", "status"),
    [
        ("/v1/faces", {"Content-Length": LIMIT + 1}, 413),
        ("/v1/faces", {"Content-Type": "image/jpeg"}, 415),
        ("/v1/faces?a=b", {}, 422),
    ],
)
def test_a_client_that_waits_is_refused_without_sending_its_body(small, path, changes, status):
    headers = FORM | {"Expect": "100-continue", "Content-Length": 1000} | changes
    with connection(small) as client:
        client.sendall(head("POST", path, headers))
        assert read_answer(client).status == status


def test_an_unknown_expectation_is_ignored_by_calls_and_refused_elsewhere(small):
    headers = FORM | length(GOOD) | {"Expect": "the-spanish-inquisition"}
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", headers) + GOOD)
        assert read_answer(client).status == 200
    with connection(small) as client:
        client.sendall(head("POST", "/nowhere", headers) + GOOD)
        read_answer(client).problem("bad_request", 400)


@pytest.mark.parametrize("pause_at", [0, 1000])
def test_a_body_that_does_not_come_in_time_is_a_timeout(small, pause_at):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", FORM | length(GOOD)) + GOOD[:pause_at])
        members = read_answer(client).problem("body_timeout", 408)
        assert members["limit"] == 1.5
        assert closed(client)


def test_a_client_that_drips_cannot_stretch_the_time(small):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", FORM | length(GOOD)))
        client.settimeout(0.1)
        for byte in GOOD[:200]:
            client.sendall(bytes([byte]))
            try:
                assert client.recv(1, socket.MSG_PEEK)
                break
            except TimeoutError:
                continue
        client.settimeout(20)
        read_answer(client).problem("body_timeout", 408)


def test_a_slow_body_holds_no_place(small):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", FORM | length(GOOD)) + GOOD[:1000])
        assert small.form("/v1/faces", ("image", HOPPER)).status == 200
        assert small.service.in_work == 0


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "nonsense"])
def test_a_compressed_body_is_refused_unread(small, encoding):
    bomb = gzip.compress(bytes(30_000_000))
    headers = JSON | {"Content-Encoding": encoding}
    answer = small.send("POST", "/v1/faces", bomb, headers)
    answer.problem("unsupported_media_type", 415)
    assert answer.headers["Accept-Encoding"] == "identity"


def test_identity_is_no_compression(small):
    headers = FORM | {"Content-Encoding": "identity"}
    assert small.send("POST", "/v1/faces", GOOD, headers).status == 200


@pytest.mark.parametrize("body", [b"zz\r\nxx", b"5\r\nabc", b"-5\r\nabc\r\n0\r\n\r\n"])
def test_broken_chunks_are_a_bad_request(small, body):
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", CHUNKED) + body)
        client.shutdown(socket.SHUT_WR) if body.startswith(b"5") else None
        try:
            answer = read_answer(client)
        except OSError:
            assert body.startswith(b"5")  # the client has gone: nobody is there to be answered
        else:
            answer.problem("bad_request", 400)


@pytest.mark.parametrize("body", [b"zz\r\nxx", b"-5\r\nabc\r\n0\r\n\r\n", b"5\r\nabcdefgh\r\n"])
def test_chunks_that_break_later_end_at_the_latest_with_the_time(small, body):
    """aiohttp's C parser does not tell the reader of a body that it has given up."""
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", CHUNKED) + b"3\r\nabc\r\n")
        time.sleep(0.1)  # the head and the first chunk are read by then
        client.sendall(body)
        answer = read_answer(client)
        answer.problem("bad_request" if answer.status == 400 else "body_timeout")
        assert closed(client)


def test_a_connection_survives_errors_whose_body_was_read(small):
    with connection(small) as client:
        for _ in range(3):
            client.sendall(head("POST", "/v1/faces", FORM | length(GOOD[:-4])) + GOOD[:-4])
            assert read_answer(client).status == 400
        client.sendall(head("GET", "/nowhere"))
        assert read_answer(client).status == 404
        client.sendall(head("POST", "/v1/faces", FORM | length(GOOD)) + GOOD)
        assert read_answer(client).status == 200


def test_an_unread_body_is_never_taken_for_the_next_request(small):
    hidden = head("GET", "/healthz")
    with connection(small) as client:
        client.sendall(head("POST", "/v1/faces", {"Content-Type": "image/jpeg"} | length(hidden)))
        answer = read_answer(client)
        assert answer.status == 415
        client.sendall(hidden)
        assert closed(client)
