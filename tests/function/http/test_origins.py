"""Which pages may call: names of the machine itself, other origins, and browsers that ask first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.http.origins import Origins
from function.problems import Problem
from function.settings import load
from function.settings.access import AccessSettings, AddressSettings
from tests.function.live import COLLINS, Live

LOOPBACK = Origins(anonymous=True, own="127.0.0.1")
OPEN = Origins(anonymous=True)
APP = "https://app.example"


def allowed(origins, host=None, origin=None):
    """Whether a request is let in."""
    headers = {"Host": host, "Origin": origin}
    try:
        origins.check({name: value for name, value in headers.items() if value is not None})
    except Problem as problem:
        return problem.code != "forbidden"
    return True


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:8080", "127.1.2.3", "[::1]:8080",
     "[::1]", "ember.localhost:80", "localhost.:80", None],
)  # fmt: skip
def test_on_loopback_the_machine_itself_may_be_called_by_any_of_its_names(host):
    assert allowed(LOOPBACK, host)
    assert allowed(OPEN, host)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example",
     "evil-localhost", "10.0.0.1", "0.0.0.0:8080", "[::2]", "2130706433", "0x7f.1", "", "[",
     "localhost@evil.example", "::1"],
)  # fmt: skip
def test_on_loopback_no_other_name_is_answered_for(host):
    assert not allowed(LOOPBACK, host)
    assert not allowed(LOOPBACK, host, f"http://{host}")
    assert allowed(OPEN, host)  # something in front of it decides


def test_the_name_that_is_listened_on_is_the_machines_own():
    own = Origins.of(AddressSettings(host="My-Laptop"), AccessSettings())
    assert allowed(own, "my-laptop:8080")
    assert allowed(own, "localhost:8080")
    assert not allowed(own, "their-laptop:8080")


@pytest.mark.parametrize("origins", [LOOPBACK, OPEN])
@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_the_servers_own_page_may_call_and_no_other(origins, host):
    assert allowed(origins, host, f"http://{host}")
    assert allowed(origins, host, f"https://{host}")
    others = ["http://evil.example", "null", "http://localhost:9999", f"http://{host}.evil.example"]
    for other in [*others, f"ftp://{host}", host, "", f"http://{host}@evil.example"]:
        assert not allowed(origins, host, other)


def test_behind_something_that_decides_pages_of_other_names_may_call():
    assert allowed(OPEN, "ember.example", "https://shop.example")
    assert not allowed(OPEN, "localhost:8080", "https://shop.example")  # a published port


def test_where_callers_say_who_they_are_no_page_has_their_credentials():
    guarded = Origins.of(AddressSettings(), AccessSettings(auth="keys"))
    assert allowed(guarded, "evil.example", "http://evil.example")


def test_named_origins_may_call():
    named = replace(LOOPBACK, allowed=frozenset({APP}))
    assert allowed(named, "localhost:8080", APP)
    assert not allowed(named, "localhost:8080", "https://app.example.evil")
    assert not allowed(named, "evil.example", APP)
    assert allowed(replace(LOOPBACK, allowed=frozenset("*")), "localhost", "null")


@given(st.text(), st.text())
def test_no_host_or_origin_header_breaks_the_check(host, origin):
    for origins in (LOOPBACK, OPEN, replace(OPEN, allowed=frozenset({APP}))):
        allowed(origins, host, origin)
        origins.answer({"Origin": origin})


@pytest.mark.parametrize(
    ("given_", "read"),
    [("https://A.example, http://b:1", ("https://a.example", "http://b:1")), ("*", ("*",))],
)
def test_the_setting_names_origins(given_, read):
    assert load({"EMBER_CORS_ORIGINS": given_}).address.cors_origins == read


def test_a_foreign_name_or_page_is_refused_before_anything_is_done(live):
    for headers in (
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ):
        answer = live.form("/v1/faces", ("image", COLLINS), **headers)
        assert "setting" in answer.problem("forbidden", 403)
        assert "Access-Control-Allow-Origin" not in answer.headers
        live.get("/", **headers).problem("forbidden", 403)
    own = {"Origin": live.url}
    assert live.form("/v1/faces", ("image", COLLINS), **own).status == 200


def test_by_default_no_browser_is_told_that_it_may(live):
    asked = {"Origin": APP, "Access-Control-Request-Method": "POST"}
    answer = live.send("OPTIONS", "/v1/swap", headers=asked)
    assert not [name for name in answer.headers if name.startswith("Access-Control")]


def test_a_named_page_may_call_and_read_the_answer():
    with Live(cors_origins=(APP,)) as server:
        asked = {"Origin": APP, "Access-Control-Request-Method": "POST"}
        answer = server.send("OPTIONS", "/v1/swap", headers=asked)
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == APP
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
        assert answer.headers["Vary"] == "Origin"
        good = server.form("/v1/faces", ("image", COLLINS), Origin=APP)
        bad = server.get("/nowhere", Origin=APP)
        assert (good.status, bad.status) == (200, 404)
        for each in (good, bad):
            assert each.headers["Access-Control-Allow-Origin"] == APP
            assert "Retry-After" in each.headers["Access-Control-Expose-Headers"]
        other = server.get("/nowhere", Origin="https://other.example")
        other.problem("forbidden", 403)
        assert "Access-Control-Allow-Origin" not in other.headers


def test_every_page_may_call_where_the_operator_says_so():
    with Live(cors_origins=("*",), auth="none", allow_anonymous=True, host="0.0.0.0") as server:
        answer = server.get("/readyz", Origin="https://any.example", Host="ember.example")
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
