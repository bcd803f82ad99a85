"""Every problem code, produced over real HTTP; a code without a producer fails here."""

from __future__ import annotations

import io
from ipaddress import ip_network
from pathlib import Path

import pytest
from PIL import Image

from function.admission.keys import new
from function.admission.policy import BUILT_IN
from function.problems import KINDS
from tests.function.live import COLLINS, FORM, NOBODY, SOURCE, TARGET, Live, png
from tests.function.raw import connection, head, read_answer


@pytest.fixture(scope="module")
def strict():
    """A server with narrow limits and a broken `Fetch`."""

    async def broken(uri, field, take):
        raise RuntimeError("a secret of the inside")

    limits = {"max_body_bytes": 200_000, "max_pixels": 320_000, "body_timeout_s": 0.3}
    limits["clip_max_frames"] = 2
    with Live(fetch=broken, **limits) as server:
        yield server


@pytest.fixture(scope="module")
def cold():
    with Live(warm=False) as server:
        yield server


@pytest.fixture(scope="module")
def narrow():
    """A server with room for one body, which is being sent."""
    with Live(max_body_bytes=50_000, max_bodies_bytes=1024) as server, connection(server) as client:
        client.sendall(head("POST", "/v1/swap", FORM | {"Content-Length": 50_000, **CONTINUE}))
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        yield server


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key for a tier that there is, one for a tier that there is not, and their file."""
    path = tmp_path_factory.mktemp("keys") / "keys"
    made = {tier: new("ann", tier) for tier in ("free", "no-such-tier")}
    path.write_text("\n".join(line for _, line in made.values()))
    return {"file": path} | {tier: f"Bearer {key}" for tier, (key, _) in made.items()}


@pytest.fixture(scope="module")
def guarded(keys):
    """A server that knows its callers and gives them nothing."""
    policy = keys["file"].with_name("policy.toml")
    policy.write_text(BUILT_IN.read_text().replace("tokens = 10 ", "tokens = 0 "))
    with Live(auth="keys", keys=keys["file"], policy=policy) as server:
        yield server


@pytest.fixture(scope="module")
def storeless(keys):
    """A server whose store of tokens cannot be reached."""
    redis = {"redis_url": "redis://127.0.0.1:9/0", "quota_fail": "closed"}
    with Live(auth="keys", keys=keys["file"], **redis) as server:
        yield server


@pytest.fixture(scope="module")
def issuerless():
    """A server whose issuer of tokens cannot be reached."""
    jwt = {"jwt_issuer": "us", "jwt_audience": "us", "jwt_jwks_url": "http://127.0.0.1:9/keys"}
    with Live(auth="jwt", **jwt) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A server that reads files from a folder, and addresses of this machine."""
    path = tmp_path_factory.mktemp("photos")
    (path / "large.jpg").write_bytes(bytes(2000))
    here = {"uri_folders": (path,), "uri_networks": (ip_network("127.0.0.0/8"),)}
    with Live(**here, uri_timeout_s=1.0, max_body_bytes=1024) as server:
        server.folder = path
        yield server


def swap(*parts, **headers):
    return lambda servers: servers["live"].form("/v1/swap", *parts, **headers)


def gif(frames):
    """A small animation of nobody."""
    first, *rest = [Image.new("L", (32, 32), 40 * number) for number in range(frames)]
    out = io.BytesIO()
    first.save(out, "GIF", save_all=True, append_images=rest)
    return out.getvalue()


def slow_body(servers):
    """Announce a body, send a part of it, and read what comes."""
    with connection(servers["strict"]) as client:
        client.sendall(head("POST", "/v1/swap", FORM | {"Content-Length": 1000}) + b"--a")
        return read_answer(client)


def slow_body_in_a_hurry(servers):
    """The same with a deadline that comes first."""
    with connection(servers["live"]) as client:
        hurry = FORM | {"Content-Length": 1000, "Request-Timeout": "0.2"}
        client.sendall(head("POST", "/v1/swap", hurry) + b"--a")
        return read_answer(client)


CONTINUE = {"Expect": "100-continue"}
PRODUCERS = {
    "bad_request": lambda servers: servers["live"].json("/v1/swap", b"{"),
    "unauthenticated": lambda servers: servers["guarded"].form("/v1/faces", ("image", NOBODY)),
    "forbidden": lambda servers: servers["guarded"].form(
        "/v1/faces", ("image", NOBODY), Authorization=servers["keys"]["no-such-tier"]
    ),
    "not_found": lambda servers: servers["live"].get("/v2/swap"),
    "method_not_allowed": lambda servers: servers["live"].get("/v1/swap"),
    "not_acceptable": swap(SOURCE, TARGET, Accept="text/html"),
    "body_timeout": slow_body,
    "body_too_large": lambda servers: servers["strict"].form(
        "/v1/swap", ("source", bytes(300_000))
    ),
    "too_many_pixels": lambda servers: servers["strict"].form(
        "/v1/faces", ("image", png(600, 600))
    ),
    "unsupported_media_type": swap(SOURCE, ("target", b"%PDF-1.7 not a photo")),
    "clip_too_long": lambda servers: servers["strict"].form("/v1/swap", SOURCE, ("target", gif(3))),
    "bad_clip": swap(SOURCE, ("target", gif(3)[:-30])),
    "needs_job": swap(SOURCE, ("target", b"\0\0\0\x18ftypisom\0\0\2\0")),
    "bad_image": swap(SOURCE, ("target", COLLINS[:3000])),
    "unknown_field": swap(SOURCE, TARGET, ("face", "all")),
    "missing_field": swap(SOURCE),
    "bad_value": swap(SOURCE, TARGET, ("quality", "101")),
    "unsupported_uri": lambda servers: servers["live"].json(
        "/v1/faces", {"image": "ftp://bucket/photo.jpg"}
    ),
    "object_not_found": lambda servers: servers["folder"].json(
        "/v1/faces", {"image": f"{servers['folder'].folder.as_uri()}/nothing.jpg"}
    ),
    "object_forbidden": lambda servers: servers["live"].json(
        "/v1/faces", {"image": "https://127.0.0.1/photo.jpg"}
    ),
    "object_too_large": lambda servers: servers["folder"].json(
        "/v1/faces", {"image": f"{servers['folder'].folder.as_uri()}/large.jpg"}
    ),
    "storage_unavailable": lambda servers: servers["folder"].json(
        "/v1/faces", {"image": "https://127.0.0.1:9/photo.jpg"}
    ),
    "no_face": swap(SOURCE, ("target", NOBODY)),
    "no_such_face": swap(SOURCE, TARGET, ("faces", "index:1")),
    "no_match": swap(SOURCE, TARGET, ("faces", "like"), ("like", SOURCE[1])),
    "quota_exhausted": lambda servers: servers["guarded"].form(
        "/v1/swap", SOURCE, TARGET, Authorization=servers["keys"]["free"]
    ),
    "internal": lambda servers: servers["strict"].json("/v1/faces", {"image": "data:,x"}),
    "auth_unavailable": lambda servers: servers["issuerless"].form(
        "/v1/faces", ("image", NOBODY), Authorization="Bearer e30.e30.e30"
    ),
    "quota_unavailable": lambda servers: servers["storeless"].form(
        "/v1/swap", SOURCE, TARGET, Authorization=servers["keys"]["free"]
    ),
    "not_ready": lambda servers: servers["cold"].form("/v1/faces", ("image", COLLINS)),
    "deadline_exceeded": slow_body_in_a_hurry,
    "url_too_long": lambda servers: servers["live"].get("/?" + "x" * 9000),
    "head_too_large": lambda servers: servers["live"].get("/", X_Long="x" * 9000),
    "range_not_satisfiable": lambda servers: servers["live"].get("/", Range="bytes=9999999-"),
    "too_often": lambda servers: [
        servers["live"].send("POST", "/warmup?force=true") for _ in range(2)
    ][-1],
    "overloaded": lambda servers: servers["narrow"].form("/v1/faces", ("image", NOBODY)),
}

ELSEWHERE = {
    "bad_event", "no_source", "output_taken", "event_in_work", "events_unavailable",
    "sink_unavailable", "job_conflict", "jobs_unavailable", "too_many_faces", "too_many",
    "signing_failed", "unsignable",
    "audit_unavailable",
    "refused_content", "refused_identity", "refused_age", "consent_required",
}  # fmt: skip

MEMBERS = {
    "body_timeout": {"limit": 0.3, "setting": "EMBER_BODY_TIMEOUT_S"},
    "body_too_large": {"limit": 200_000, "setting": "EMBER_MAX_BODY_BYTES"},
    "too_many_pixels": {"limit": 320_000, "value": 360_000, "image": "image"},
    "unknown_field": {"field": "face", "hint": "Did you mean `faces`?"},
    "missing_field": {"field": "target"},
    "bad_value": {"field": "quality"},
    "unsupported_uri": {"field": "image"},
    "not_ready": {"phase": "starting"},
    "overloaded": {"limit": 50_000, "setting": "EMBER_MAX_BODIES_BYTES"},
    "bad_image": {"image": "target"},
    "deadline_exceeded": {"limit": 0.2},
    "quota_exhausted": {"value": 1, "limit": 0},
}
HEADERS = {
    "unauthenticated": {"WWW-Authenticate": 'Bearer realm="ember"'},
    "quota_unavailable": {"Retry-After": "5"},
    "method_not_allowed": {"Allow": "OPTIONS, POST"},
    "not_ready": {"Retry-After": "1"},
    "overloaded": {"Retry-After": "1"},
}


def test_codes_that_need_more_than_a_server_are_produced_elsewhere():
    folder = Path(__file__).parents[1]
    paths = [
        path
        for name in ("background/events", "background/jobs")
        for path in (folder / name).glob("test_*.py")
    ]
    paths.append(folder / "http" / "test_pricing.py")
    paths += (folder / "trust").rglob("test_*.py")
    tested = "".join(path.read_text() for path in paths)
    for code in ELSEWHERE:
        assert code in KINDS
        assert f'"{code}"' in tested


@pytest.mark.parametrize("code", [code for code in KINDS if code not in ELSEWHERE])
def test_every_code_is_answered_as_a_problem(
    code, live, strict, cold, narrow, guarded, issuerless, storeless, keys, folder
):
    servers = {"live": live, "strict": strict, "cold": cold, "narrow": narrow}
    servers |= {"guarded": guarded, "issuerless": issuerless}
    servers |= {"storeless": storeless, "keys": keys, "folder": folder}
    answer = PRODUCERS[code](servers)
    members = answer.problem(code, KINDS[code].status)
    request_id = answer.headers["Ember-Request-Id"]
    assert members["type"] == f"urn:ember:problem:{code}"
    assert members["title"] == KINDS[code].title
    assert members["instance"] == f"urn:ember:request:{request_id}"
    assert members["request_id"] == request_id
    assert members["detail"]
    assert members["hint"]
    assert members.items() >= MEMBERS.get(code, {}).items()
    assert dict(answer.headers).items() >= HEADERS.get(code, {}).items()
    assert "total;dur=" in answer.headers["Server-Timing"]


def test_an_unexpected_failure_says_nothing_of_the_inside(strict):
    answer = strict.json("/v1/faces", {"image": "data:,x"})
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert b"RuntimeError" not in answer.body


def test_no_such_face_lists_the_faces_that_there_are(live):
    members = live.form("/v1/swap", SOURCE, TARGET, ("faces", "index:7")).problem("no_such_face")
    assert [face["index"] for face in members["faces"]] == [0]
