"""What `make attack` calls harm."""

from __future__ import annotations

import json
from email.message import Message

import pytest

from tests.attack.__main__ import judged
from tests.attack.victim import Answer

MIB = 2**20


def answer(status, code="", **headers):
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return Answer(status, message, json.dumps({"code": code}).encode() if code else b"")


def judge(*answers, slowest_s=0.1, wrong=0, peak=MIB):
    return judged(list(answers), slowest_s, wrong, peak, limit=2 * MIB)


def test_served_refused_and_told_to_come_again_is_no_harm():
    busy = answer(503, "overloaded", Retry_After="2")
    assert judge(answer(200), answer(429, "quota_exhausted"), busy, answer(0)) == []


@pytest.mark.parametrize(
    "harm",
    [
        answer(500, "internal"),
        answer(504, "deadline_exceeded"),
        answer(503, "overloaded"),
        answer(503, Retry_After="2"),
        answer(502),
    ],
)
def test_a_failure_is_harm_also_a_503_that_says_nothing(harm):
    (fault,) = judge(answer(200), harm)
    assert fault.startswith("failures")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"slowest_s": 1.0}, "/healthz took 1.0 s"),
        ({"wrong": 2}, "/healthz failed 2 times"),
        ({"peak": 2 * MIB}, "2 MiB of memory, of 2"),
    ],
)
def test_so_is_a_replica_that_is_silent_or_too_large(found, said):
    assert judge(answer(200), **found) == [said]
