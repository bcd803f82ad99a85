"""The attacks: each sends a bounded number of requests and gives the answers.

What an attack expects beyond `Answer.honest` it asserts itself, with the reason as text.
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from PIL import Image

from tests.attack.victim import TOKENS, Answer, Victim, many, small, together
from tests.function.images.broken_files import broken_files
from tests.function.images.make import save
from tests.function.live import multipart
from tests.running import unused_port

MIB = 2**20
FAR = 11_999

Attack = Callable[[Victim], list[Answer]]
"""Raises AssertionError when an answer is a lie, whatever its status."""


def frames_far_outside(victim: Victim) -> list[Answer]:
    """Animations of a few kilobytes whose later frames lie far outside of their canvas."""
    targets = [far_gif(FAR, 1), far_gif(FAR, 40), far_gif(65_000, 1), far_webp(), far_apng()]
    return together(
        [partial(victim.swap, by="rich", target=target) for target in targets for _ in range(4)]
    )


def bombs(victim: Victim) -> list[Answer]:
    """Every file that the tests of decoding refuse, as target, as source and for faces."""
    files = [each.build() for each in broken_files()]
    works: list[Callable[[], Answer]] = []
    for data in files:
        works.append(partial(victim.swap, by="rich", target=data))
        works.append(partial(victim.swap, by="rich", source=data))
        works.append(partial(victim.form, "POST", "/v1/faces", ("image", data), by="rich"))
    return together(works, at_once=8)


def wide_json(victim: Victim) -> list[Answer]:
    """Bodies of 31 MiB of JSON with a character that Python keeps in four bytes each."""
    filling = base64.b64encode(bytes(22 * MIB)).decode()
    body = json.dumps(
        {
            "source": f"data:image/jpeg;base64,{filling}",
            "target": "data:,x",
            "faces": "\N{FIRE}",
        },
        ensure_ascii=False,
    ).encode()
    return many(lambda _: victim.json("/v1/swap", body), 8, at_once=4)


def deep_and_odd_json(victim: Victim) -> list[Answer]:
    """JSON that is nested without end, has numbers without end, or is none."""
    bodies = [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 100_000,
        b'{"source": ' + b"9" * 5000 + b"}",
        b"\xff\xfe[",
        b'"\\ud800"',
        b"{" + b'"a":1,' * 200_000 + b'"b":1}',
        b"null",
        b"",
        b'{"source": "data:;base64,%%%", "target": "data:,"}',
        b"-" * 4096,
        b"1e999999",
    ]
    works = [
        partial(victim.json, path, body) for path in ("/v1/swap", "/v1/faces") for body in bodies
    ]
    works += [
        partial(victim.call, "POST", "/", body, Content_Type=kind)
        for body in bodies
        for kind in (
            "application/json",
            "application/cloudevents+json",
            "application/cloudevents-batch+json",
        )
    ]
    return together(works)


def events_of_strangers(victim: Victim) -> list[Answer]:
    """Deliveries that no notifier sends: nested data, data that is no JSON, forged uploads."""
    upload = {"bucket": "uploads", "name": "a.jpg", "generation": "1"}
    pushes = [b"[" * 100_000, b"\xff\xff", b"{}", json.dumps(upload).encode(), b"9" * 5000]
    works = [
        partial(
            victim.json,
            "/",
            json.dumps(
                {
                    "message": {
                        "data": base64.b64encode(data).decode(),
                        "messageId": str(number),
                        "attributes": {
                            "eventType": "OBJECT_FINALIZE",
                            "bucketId": "uploads",
                            "objectId": "a.jpg",
                        },
                    },
                    "subscription": "s",
                }
            ).encode(),
            by=by,
        )
        for number, data in enumerate(pushes)
        for by in ("stranger", None)
    ]
    event = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "/x",
        "ce-subject": "objects/a.jpg",
        "ce-type": "google.cloud.storage.object.v1.finalized",
    }
    heads = [event, event | {"ce-subject": '"objects/a.jpg"'}, event | {"ce-id": "%zz"}]
    works += [
        partial(
            victim.call, "POST", "/", data, by="stranger", Content_Type="application/json", **head
        )
        for head in heads
        for data in pushes
    ]
    answers = together(works)
    assert not [each for each in answers if each.status in {200, 202}], (
        "a stranger's event was taken"
    )
    return answers


def heads(victim: Victim) -> list[Answer]:
    """Heads that are too long, too many, in other encodings, or two requests in one."""
    line = b"GET /v1/quota HTTP/1.1\r\nHost: localhost\r\n"
    shut = b"Connection: close\r\n\r\n"
    raw = [
        line + b"Authorization: Bearer \xff\xfe\r\n" + shut,
        line + b"Authorization: Bearer " + b"a" * 100_000 + b"\r\n" + shut,
        line + b"Authorization: \r\n" + shut,
        line + b"X: y\r\n" * 5000 + shut,
        line + b"Ember-Request-Id: \x80\x81\r\n" + shut,
        line + b"Traceparent: 00-" + b"0" * 5000 + b"\r\n" + shut,
        line + b"Request-Timeout: 1e999\r\nPrefer: " + b"respond-async," * 500 + b"\r\n" + shut,
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n" + shut,
        b"GET /%00%ff/..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n" + shut,
        b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n" + shut + b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n" + shut,
        b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        + shut
        + b"fffffffffffffffff\r\nx",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n" * 1000,
        b"\0" * 10_000,
    ]
    return together([partial(said, victim, data) for data in raw])


def forms(victim: Victim) -> list[Answer]:
    """Forms of a hundred thousand parts, of parts without end, with names in no encoding."""
    head = b'--x\r\nContent-Disposition: form-data; name="'
    bodies = [
        (head + b'a"\r\n\r\nb\r\n') * 100_000 + b"--x--\r\n",
        head + b'source"; filename="' + b"\xe4\xf6\xfc" * 1000 + b'"\r\n\r\n' + b"\r\n--x--\r\n",
        head + b"a" * 200_000 + b'"\r\n\r\n',
        head + b'source"\r\n' + b"A: b\r\n" * 20_000 + b"\r\n\r\n--x--\r\n",
        b"--x" * 300_000,
        b"",
    ]
    kinds = [
        "multipart/form-data; boundary=x",
        "multipart/form-data; boundary=" + "y" * 5000,
        "multipart/form-data",
        "multipart/mixed; boundary=x",
    ]
    return together(
        [
            partial(victim.call, "POST", "/v1/swap", body, Content_Type=kind)
            for body in bodies
            for kind in kinds
        ]
    )


def slow_clients(victim: Victim) -> list[Answer]:
    """Two hundred clients that send a byte now and then, while others are served."""
    head = (
        b"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        + victim.keys["rich"].encode()
        + b"\r\nContent-Length: 60000000\r\n"
        b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", victim.server.port), 30))
            for _ in range(200)
        ]
        for number, client in enumerate(clients):
            client.sendall(head if number % 2 else head[:40])
        answers = []
        for _ in range(10):
            for client in clients[1::2]:
                try:
                    client.sendall(b"-")
                except OSError:
                    continue
            answers.append(victim.swap(by="user"))
    served = [each.status for each in answers]
    assert served.count(200) >= 5, f"others were not served: {served}"
    return answers


def slow_places(victim: Victim) -> list[Answer]:
    """Seventy URIs of one caller that drip, while another caller's are quick."""
    with web(victim.target, pause_s=0.2) as slow, web(victim.target, pause_s=0) as quick:
        body = json.dumps({"source": slow, "target": slow}).encode()
        threads = [
            threading.Thread(target=victim.json, args=("/v1/swap", body), daemon=True)
            for _ in range(70)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1)
        body = json.dumps({"image": quick}).encode()
        began = time.monotonic()
        answer = victim.json("/v1/faces", body, by="user")
        took = time.monotonic() - began
    for thread in threads:
        thread.join(90)
    assert answer.status == 200, f"another caller got {answer.status} {answer.code}"
    assert took < 10, f"another caller waited {took:.1f} s"
    return [answer]


def burst(victim: Victim) -> list[Answer]:
    """Two hundred calls at once of a caller who has fifty tokens."""
    answers = many(lambda _: victim.swap(by="burst"), 200, at_once=200)
    done = sum(each.status == 200 for each in answers)
    left = victim.tokens("burst")
    assert done + left == TOKENS, f"{done} were answered and {left} of {TOKENS} tokens are left"
    others = {each.status for each in answers} - {200}
    assert others <= {429, 503}, f"also answered {others}"
    return answers


def full_store(victim: Victim) -> list[Answer]:
    """Jobs with padded photos until nothing more is taken; tokens are counted all the same."""
    answers = []
    for size in (6 * MIB, MIB // 4, MIB // 64):  # until not even a little more finds room
        padded = ("source", victim.source + bytes(size)), ("target", victim.target)
        for _ in range(40):
            name = secrets.token_hex(12)
            answers.append(victim.form("PUT", f"/v1/jobs/{name}", *padded, by="rich"))
            if answers[-1].status != 201:
                break
    before = victim.tokens("stranger")
    swaps = [victim.swap(by="stranger") for _ in range(3)]
    done = sum(each.status == 200 for each in swaps)
    left = victim.tokens("stranger")
    assert before - left == done, f"{done} swaps cost {before - left} tokens"
    assert done == 3, f"swaps of others were answered {[each.status for each in swaps]}"
    return answers + swaps


def streams(victim: Victim) -> list[Answer]:
    """Four hundred streams about one job."""
    job = secrets.token_hex(12)
    made = victim.form(
        "PUT",
        f"/v1/jobs/{job}",
        ("source", victim.source),
        *[("target", victim.target)] * 20,
        by="rich",
    )
    head = (
        f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {victim.keys['rich']}\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        for _ in range(400):
            client = stack.enter_context(
                socket.create_connection(("127.0.0.1", victim.server.port), 30)
            )
            client.sendall(head)
        answers = [victim.swap(by="user") for _ in range(5)]
    assert all(each.status == 200 for each in answers), "others were not served"
    return [made, *answers]


def warm_ups(victim: Victim) -> list[Answer]:
    """Forced warm-ups by whoever likes."""
    answers = [victim.call("POST", "/warmup?force=true", by=by) for by in (None, "rich") * 20]
    assert not any(each.status == 200 for each in answers), "a stranger forced a warm-up"
    assert victim.call("GET", "/readyz", by=None).status == 200, "it is not ready any more"
    return answers


def gone(victim: Victim) -> list[Answer]:
    """Clients that leave: half-way through a body, or as soon as it is sent."""
    body = multipart(("source", victim.source), ("target", small("astronaut.png", 2000)))
    head = (
        f"POST /v1/swap HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        f"{victim.keys['rich']}\r\nContent-Type: multipart/form-data; boundary=a-boundary\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    for number in range(100):
        with socket.create_connection(("127.0.0.1", victim.server.port), 30) as client:
            client.sendall(head + (body if number % 2 else body[: len(body) // 2]))
    return [victim.swap(by="user")]


def dear_requests(victim: Victim) -> list[Answer]:
    """Eight sources of 49 megapixels each, three at once, by one who has ten tokens."""
    huge = save(Image.new("RGB", (7000, 7000), (120, 90, 80)), "JPEG", quality=30)
    parts = [("source", huge)] * 8 + [("target", victim.target)]
    return many(lambda _: victim.form("POST", "/v1/swap", *parts, by="stranger"), 6, at_once=3)


ATTACKS: tuple[Attack, ...] = (
    frames_far_outside,
    bombs,
    wide_json,
    deep_and_odd_json,
    events_of_strangers,
    heads,
    forms,
    slow_clients,
    slow_places,
    gone,
    dear_requests,
    streams,
    warm_ups,
    burst,
    full_store,
)


# --- what they send -------------------------------------------------------------------------------


def far_gif(far: int, count: int) -> bytes:
    """A GIF whose frames after the first lie at (far, far)."""
    first = save(Image.open(io.BytesIO(small("astronaut.png"))).quantize(64), "GIF")
    frame = struct.pack("<HHHHB", far, far, 1, 1, 0) + b"\2\2\x44\1\0"
    later = b"\x21\xf9\x04\x04\x0a\0\0\0\x2c" + frame
    return first[:-1] + later * count + b"\x3b"


def far_webp() -> bytes:
    """A WebP whose second frame lies beyond its canvas."""
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue")]
    data = save(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=100)
    at = data.index(b"ANMF", data.index(b"ANMF") + 4) + 8
    return data[:at] + (FAR // 2).to_bytes(3, "little") * 2 + data[at + 6 :]


def far_apng() -> bytes:
    """An APNG whose second frame lies beyond its canvas; its checksum is right."""
    import zlib

    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue")]
    data = save(frames[0], "PNG", save_all=True, append_images=frames[1:], duration=100)
    at = data.rindex(b"fcTL")
    content = bytearray(data[at : at + 30])
    content[16:24] = struct.pack(">2I", FAR, FAR)
    return data[:at] + content + struct.pack(">I", zlib.crc32(content)) + data[at + 34 :]


def said(victim: Victim, data: bytes) -> Answer:
    """What is answered to bytes that may be no request; 0 if nothing is."""
    from http.client import HTTPException, HTTPResponse

    try:
        with socket.create_connection(("127.0.0.1", victim.server.port), 10) as client:
            client.sendall(data)
            client.settimeout(10)
            response = HTTPResponse(client)
            response.begin()
            return Answer(response.status, response.headers, response.read())
    except (OSError, HTTPException):
        return Answer(0)


@contextmanager
def web(content: bytes, pause_s: float) -> Iterator[str]:
    """The address of a web server that sends a byte, waits, and so on; or all at once."""
    stop = threading.Event()

    def answer(client: socket.socket) -> None:
        with client:
            try:
                client.recv(65536)
                client.sendall(
                    f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode()
                )
                if not pause_s:
                    client.sendall(content)
                for byte in content if pause_s else b"":
                    if stop.wait(pause_s):
                        return
                    client.sendall(bytes([byte]))
            except OSError:
                return

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    port = unused_port()
    with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{port}/photo.jpg"
        finally:
            stop.set()
