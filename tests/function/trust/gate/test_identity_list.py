"""Lists of people: what their lines say, and whom they match."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from function.faces.identity import DLIB
from function.trust.gate.identity_list import (
    IdentityList,
    IdentityListError,
    IdentityModel,
    new_person,
    parse,
)

from .conftest import MODEL, alike, somebody

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
A, B = somebody(1), somebody(2)


def test_a_list_is_read_as_it_was_written():
    ends = NOW + timedelta(days=30)
    people = (
        new_person("asked by mail — très bien", MODEL, [A, B], until=ends),
        new_person("", MODEL, [B], threshold=0.4),
    )
    again = parse(IdentityList(people).data())
    assert again.people == people
    assert parse(b"\n\n").people == ()


def test_the_nearest_person_counts_and_each_photo_of_it():
    one, other = new_person("one", MODEL, [somebody(5), A]), new_person("other", MODEL, [B])
    people = IdentityList((one, other))
    assert people.match(alike(A, 0.2), DLIB, NOW) is one
    assert people.match(alike(B, 0.2), DLIB, NOW) is other
    assert people.match(somebody(9), DLIB, NOW) is None
    both = IdentityList((new_person("far", MODEL, [alike(A, 0.4)]), new_person("near", MODEL, [A])))
    assert both.match(A, DLIB, NOW).label == "near"


def test_a_person_may_have_a_distance_of_its_own():
    strict, lax = (IdentityList((new_person("x", MODEL, [A], threshold=t),)) for t in (0.2, 0.9))
    assert strict.match(alike(A, 0.3), DLIB, NOW) is None
    assert lax.match(alike(A, 0.8), DLIB, NOW)


def test_what_has_ended_matches_nobody():
    people = IdentityList((new_person("x", MODEL, [A], until=NOW),))
    assert people.match(A, DLIB, NOW - timedelta(seconds=1))
    assert people.match(A, DLIB, NOW) is None


def test_one_is_added_and_removed():
    one, other = new_person("one", MODEL, [A]), new_person("other", MODEL, [B])
    both = IdentityList().added(one).added(other)
    assert both.removed(one.id).people == (other,)
    with pytest.raises(KeyError):
        both.removed("nobody")


def test_embeddings_of_another_model_have_to_be_made_anew():
    other = IdentityModel("arcface", "0" * 64)
    people = IdentityList((new_person("x", MODEL, [A]), new_person("y", other, [B])))
    with pytest.raises(IdentityListError, match=r"1 of 2 people .* enrol them again"):
        people.check(MODEL)
    IdentityList((people.people[0],)).check(MODEL)


GOOD = json.loads(new_person("x", MODEL, [A]).line())


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": 7},
        {"created": "yesterday"},
        {"until": "never"},
        {"threshold": "0.5"} | {"threshold": "x"},
        {"threshold": -1},
        {"threshold": 10**400},
        {"threshold": float("nan")},
        {"embeddings": []},
        {"embeddings": ["!"]},
        {"embeddings": ["AAAA"]},  # three bytes
        {"embeddings": ["AADAfw=="]},  # not a number
        {"family": None},
    ],
)
def test_a_line_that_makes_no_sense_is_named_by_its_number_only(change):
    lines = [json.dumps(GOOD), json.dumps(GOOD | change)]
    with pytest.raises(IdentityListError, match="line 2") as caught:
        parse("\n".join(lines).encode())
    assert GOOD["embeddings"][0] not in str(caught.value)


@pytest.mark.parametrize("data", [b"[]", b"{}", b"\xff", b"1", b'{"id": "a"', b"[" * 10_000])
def test_what_is_no_list_is_none(data):
    with pytest.raises(IdentityListError):
        parse(data)


def test_ids_are_of_one_person_and_embeddings_of_one_length():
    line = json.dumps(GOOD)
    with pytest.raises(IdentityListError, match="same id"):
        parse(f"{line}\n{line}".encode())
    other = new_person("y", MODEL, [np.ones(512, np.float32)]).line()
    with pytest.raises(IdentityListError, match="lengths"):
        parse(f"{line}\n{other}".encode())
    with pytest.raises(IdentityListError, match="than 128"):
        parse(other.encode()).check(MODEL)


def test_times_without_a_zone_are_those_of_greenwich():
    line = json.dumps(GOOD | {"until": "2026-12-24T00:00:00"})
    assert parse(line.encode()).people[0].until == datetime(2026, 12, 24, tzinfo=UTC)


def test_ten_thousand_people_are_compared_in_one_go():
    rows = np.random.default_rng(1).normal(size=(10_000, 128)).astype(np.float32)
    people = IdentityList(tuple(new_person(str(n), MODEL, [row]) for n, row in enumerate(rows)))
    assert people.match(rows[7_000], DLIB, NOW).label == "7000"
