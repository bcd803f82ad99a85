"""Who may call, over real HTTP, and what stays open to everybody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from function.admission import keys
from function.request_context import Lane
from tests.function.live import FORM, HOPPER, Live
from tests.function.raw import connection, head, read_answer
from tests.running import running

PART = ("image", HOPPER)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The file of keys, and a key for each tier."""
    path = tmp_path_factory.mktemp("keys") / "keys"
    made = {tier: keys.new(f"{tier}-person", tier) for tier in ("free", "paid", "vip", "gold")}
    made["lifted"] = keys.new("lifted-person", "free", Lane.STANDARD)
    path.write_text("\n".join(line for _, line in made.values()))
    return path, {tier: f"Bearer {key}" for tier, (key, _) in made.items()}


@pytest.fixture(scope="module")
def guarded(made):
    path, _ = made
    with Live(auth="keys", keys=path) as server:
        yield server


@pytest.fixture(scope="module")
def bearer(made):
    return made[1]


def test_a_call_without_credentials_is_told_how_to_get_in(guarded):
    answer = guarded.form("/v1/faces", PART)
    answer.problem("unauthenticated", 401)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="ember"'


@pytest.mark.parametrize("sent", ["Bearer nonsense", "Bearer ", "Basic YTpi", "", "Bearer ü"])
def test_wrong_credentials_are_refused(guarded, sent):
    answer = guarded.form("/v1/faces", PART, Authorization=sent.encode())
    answer.problem("unauthenticated", 401)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


def test_a_key_lets_its_caller_in(guarded, bearer):
    for scheme in ("Bearer", "bearer"):
        sent = bearer["paid"].replace("Bearer", scheme)
        assert guarded.form("/v1/faces", PART, Authorization=sent).status == 200


def test_missing_credentials_are_refused_before_the_photo_is_sent(guarded):
    expect = FORM | {"Expect": "100-continue", "Content-Length": 1000}
    with connection(guarded) as client:
        client.sendall(head("POST", "/v1/swap", expect))
        read_answer(client).problem("unauthenticated", 401)


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/warmup", "/openapi.json", "/", "/page/app.js"]
)
def test_probes_metrics_and_the_page_are_open(guarded, path):
    assert guarded.get(path).status == 200


def test_a_tier_that_the_policy_does_not_know_is_forbidden(guarded, bearer):
    guarded.form("/v1/faces", PART, Authorization=bearer["gold"]).problem("forbidden", 403)


@pytest.mark.parametrize(
    ("tier", "lane", "status"),
    [
        ("free", "bulk", 200),
        ("free", "standard", 403),
        ("paid", "standard", 200),
        ("paid", "bulk", 200),
        ("paid", "interactive", 403),
        ("vip", "interactive", 200),
        ("lifted", "standard", 200),
        ("lifted", "interactive", 403),
    ],
)
def test_a_caller_may_ask_for_its_own_lane_and_those_below(guarded, bearer, tier, lane, status):
    answer = guarded.form("/v1/faces", PART, Authorization=bearer[tier], Ember_Lane=lane)
    assert answer.status == status
    if status == 403:
        assert lane not in answer.problem("forbidden")["allowed"]


def test_nothing_of_a_key_or_of_a_caller_is_logged(made, caplog):
    path, bearer = made
    caplog.set_level("DEBUG")
    with Live(auth="keys", keys=path) as server:
        assert server.form("/v1/faces", PART, Authorization=bearer["paid"]).status == 200
        server.form("/v1/faces", PART, Authorization="Bearer a-wrong-secret")
    told = "\n".join(str(record.__dict__) for record in caplog.records)
    assert "/v1/faces" in told
    for secret in (bearer["paid"].removeprefix("Bearer "), "a-wrong-secret", "paid-person"):
        assert secret not in told


def function(**environ):
    import os

    return subprocess.run(
        [sys.executable, "-m", "function"],
        env={**os.environ, "EMBER_PORT": "0", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_that_others_can_reach_does_not_start_without_authentication(host):
    done = function(EMBER_HOST=host)
    assert done.returncode == 78
    assert "EMBER_AUTH" in done.stderr
    assert "EMBER_ALLOW_ANONYMOUS=true" in done.stderr


def test_everybody_may_call_where_the_operator_allows_anonymous_callers():
    with running(ready=False, EMBER_HOST="0.0.0.0", EMBER_ALLOW_ANONYMOUS="true") as server:
        assert server.process.poll() is None


def test_a_server_with_keys_may_be_reached_by_others(made):
    auth = {"EMBER_AUTH": "keys", "EMBER_KEYS": str(made[0])}
    with running(ready=False, EMBER_HOST="0.0.0.0", **auth) as server:
        assert server.process.poll() is None


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({"EMBER_AUTH": "keys"}, "needs EMBER_KEYS"),
        ({"EMBER_AUTH": "keys", "EMBER_KEYS": __file__}, "line 1, is not"),
        ({"EMBER_AUTH": "jwt"}, "EMBER_JWT_ISSUER, EMBER_JWT_AUDIENCE, EMBER_JWT_JWKS_URL"),
        ({"EMBER_AUTH": "jwt", "EMBER_JWT_JWKS_URL": "http://issuer/keys"}, "https://"),
        ({"EMBER_POLICY": __file__}, "policy"),
    ],
)
def test_what_is_missing_or_wrong_ends_the_start_with_the_reason(environ, reason):
    done = function(**environ)
    assert done.returncode == 78
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
