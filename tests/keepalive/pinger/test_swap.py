"""The tiny swap: against a real server, and against servers that give something else."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from urllib.request import urlopen

import pytest

from keepalive.exchange import Unreachable
from keepalive.pinger.swap import SwapBusy, SwapWrong, address, swap
from tests.keepalive.answering import READY, answering, serving
from tests.running import running


def report(**changes):
    """What a server answers to the tiny swap, as far as it is looked at."""
    identity = {"before": 0.66, "after": 0.33, "kept": 0.5}
    image = {"media_type": "image/jpeg", "base64": b64encode(b"\xff\xd8 \xff\xd9").decode()}
    told = {"width": 164, "height": 192, "image": image, "faces": [{"identity": identity}]}
    return json.dumps({**told, **changes}).encode()


def test_a_real_server_swaps(server):
    swapped = swap(f"{server.url}/v1/swap", 60)
    assert swapped.after < 0.5 < swapped.before
    assert swapped.warnings == ()
    assert swapped.degraded == ()
    assert swapped.request_id
    assert 0 < swapped.latency_s < 60


def counted(server, route):
    """Requests and seconds of a route so far."""
    with urlopen(f"{server.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return [line for line in lines if f'route="{route}"' in line and "created" not in line]


def test_it_is_not_counted_among_what_users_ask(server):
    before = counted(server, "/v1/swap"), counted(server, "ping")
    swap(f"{server.url}/v1/swap", 60)
    after = counted(server, "/v1/swap"), counted(server, "ping")
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_it_goes_after_what_users_ask_unless_told_otherwise():
    with answering(200, report()) as server:
        swap(server.url, 5)
        swap(server.url, 5, {"Ember-Lane": "standard"})
    assert [heads["Ember-Lane"] for heads in server.heads] == ["bulk", "standard"]


def test_a_server_with_too_much_to_do_is_busy_not_broken():
    problem = b'{"code": "overloaded", "request_id": "r1"}'
    with answering(503, problem) as server, pytest.raises(SwapBusy, match="503 overloaded"):
        swap(server.url, 5)
    problem = b'{"code": "not_ready", "request_id": "r1"}'
    with answering(503, problem) as server, pytest.raises(Unreachable, match="503 not_ready"):
        swap(server.url, 5)


def test_a_swap_is_asked_for_where_readiness_is():
    assert address("https://host/readyz") == "https://host/v1/swap"
    assert address("https://host/ember/readyz") == "https://host/ember/v1/swap"
    with pytest.raises(ValueError, match="ends in /readyz"):
        address("https://host/health")


def test_what_may_look_wrong_is_told():
    headers = {"Ember-Warnings": "occluded, low_similarity", "Ember-Degraded": "identity"}
    with answering(200, report(), headers=headers) as server:
        swapped = swap(server.url, 5)
    assert swapped.warnings == ("occluded", "low_similarity")
    assert swapped.degraded == ("identity",)
    assert (swapped.before, swapped.after) == (0.66, 0.33)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not as Ember does"),
        (b"[]", "not as Ember does"),
        (report(faces=[]), "not as Ember does"),
        (report(image=None), "not as Ember does"),
        (report(image={"base64": "%"}), "not as Ember does"),
        (report(image={"base64": ""}), "another image"),
        (report(width=1), "another image"),
        (report(faces=[{"identity": {"before": 0.5, "after": 0.5}}]), "was not swapped"),
    ],
)
def test_another_answer_is_wrong(body, reason):
    with answering(200, body) as server, pytest.raises(SwapWrong, match=reason):
        swap(server.url, 5)


def test_a_problem_is_named_with_its_request():
    problem = b'{"code": "no_face", "request_id": "r1"}'
    with answering(422, problem) as server, pytest.raises(SwapWrong) as told:
        swap(server.url, 5)
    assert str(told.value) == "the swap was answered 422 no_face (request r1)"


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_without_time_is_unavailable_not_wrong(status):
    with answering(status, b"") as server, pytest.raises(Unreachable, match=f"answered {status}"):
        swap(server.url, 5)


class TestCommand:
    """`ember ping --swap`."""

    def run(self, *words):
        return subprocess.run(
            [sys.executable, "-m", "keepalive", "ping", "--swap", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_a_real_server_is_well(self, server):
        done = self.run(server.url, "--timeout=30", "--json")
        told = json.loads(done.stdout)
        assert (done.returncode, told["outcome"]) == (0, "well")
        assert told["swapped"]["after"] < told["swapped"]["before"]
        for_people = self.run(server.url, "--timeout=30").stdout
        assert "swapped (" in for_people
        assert "identity distance 0.6" in for_people

    def test_a_slow_swap_is_told_with_what_it_gave(self, server):
        done = self.run(server.url, "--timeout=30", "--max-latency=0.001", "--json")
        told = json.loads(done.stdout)
        assert (done.returncode, told["outcome"]) == (75, "slow")
        assert "the swap took" in told["reason"]
        assert told["swapped"]["request_id"]

    def test_a_wrong_swap_is_told(self):
        def answer(path):
            return (200, READY) if path == "/readyz" else (200, report(faces=[]))

        with serving(answer) as server:
            done = self.run(server.url)
        assert done.returncode == 76
        assert "ready (" in done.stderr
        assert "not as Ember does" in done.stderr

    def test_a_busy_server_is_told(self):
        def answer(path):
            return (
                (200, READY)
                if path == "/readyz"
                else (503, b'{"code": "overloaded", "request_id": ""}')
            )

        with serving(answer) as server:
            done = self.run(server.url, "--json")
        assert done.returncode == 75
        assert json.loads(done.stdout)["outcome"] == "busy"

    def test_it_needs_an_address_that_tells_where_to_swap(self):
        assert self.run("http://host/health").returncode == 2

    @pytest.mark.slow
    def test_a_real_server_that_starts_is_waited_for(self):
        with running(ready=False) as starting:
            done = self.run(starting.url, "--wait=120", "--timeout=30", "--json")
        assert done.returncode == 0, done.stdout
