"""Prices and tiers, and a policy file that is wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.admission.caller import Caller
from function.admission.policy import BUILT_IN, Job, read
from function.problems import Problem
from function.turn import Lane
from warmup.variables import SettingsError

POLICY = read()
PRICES = POLICY.prices


@pytest.fixture
def edited(tmp_path):
    """The built-in policy with some text replaced."""

    def edit(old, new):
        text = BUILT_IN.read_text()
        assert re.search(old, text)
        path = tmp_path / "policy.toml"
        path.write_text(re.sub(old, new, text, count=1))
        return path

    return edit


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (1, 1, 1),
        (854, 480, 1),
        (480, 854, 1),
        (640, 640, 1),
        (1280, 720, 3),
        (1281, 720, 5),
        (1920, 1080, 5),
        (1921, 1080, 6),
        (3840, 2160, 20),
        (8000, 6000, 116),
    ],
)
def test_the_price_follows_from_the_resolution(width, height, tokens):
    assert PRICES.of(Job(width * height)) == tokens


@pytest.mark.parametrize(("batch", "tokens"), [(1, 5), (2, 5), (3, 4), (100, 4)])
def test_three_or_more_in_a_batch_cost_four_instead_of_five(batch, tokens):
    assert PRICES.of(Job(1920 * 1080), batch) == tokens


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 5))
def test_more_pixels_never_cost_less_and_nothing_is_free(one, other, batch):
    small, large = sorted((one, other))
    assert 0 < PRICES.of(Job(small), batch) <= PRICES.of(Job(large), batch)


def test_faces_and_sources_cost_what_the_policy_says(edited):
    text = "source = 2\nface = 1\nall_faces = 3\n"
    prices = read(edited(r"source = 0(.*\n){3}", text)).prices
    assert prices.of(Job(1000, sources=3, faces=1)) == 1 + 2 * 2
    assert [prices.of(Job(1000, faces=n)) for n in (1, 2, 4, 9, None)] == [1, 2, 4, 4, 4]


def test_the_tiers_are_those_of_the_scheme():
    free, paid, vip = (POLICY.tiers[name] for name in ("free", "paid", "vip"))
    assert (free.tokens, free.refill_s) == (10, 3600)
    assert paid.tokens == 50
    assert paid.lane.before(free.lane)
    assert (vip.tokens, vip.lane) == (None, Lane.INTERACTIVE)
    assert [name for name, tier in POLICY.tiers.items() if tier.operator] == ["operator"]


def test_who_has_no_tier_has_the_usual_one():
    assert Caller("ann").within(POLICY) == (POLICY.tiers["free"], Lane.BULK)
    assert Caller("ann", "paid", "interactive").within(POLICY)[1] is Lane.INTERACTIVE


@pytest.mark.parametrize("caller", [Caller("ann", "gold"), Caller("ann", "paid", "express")])
def test_a_tier_or_a_lane_that_does_not_exist_is_forbidden(caller):
    with pytest.raises(Problem) as raised:
        caller.within(POLICY)
    assert raised.value.code == "forbidden"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('tier = "free"', 'tier = "gold"', "no such tier"),
        ('tier = "free"', "", "tier is missing"),
        ("tokens = 10 ", "tokens = -1", "tiers.free.tokens has to be a whole number"),
        ("tokens = 10 ", "tokens = 1.5", "tiers.free.tokens"),
        ("tokens = 10 ", "tokns = 10", "there is no tiers.free.tokns"),
        ("refill_s = 3600", "refill_s = 0", "refill_s"),
        ('lane = "bulk"', 'lane = "slow"', "tiers.free.lane has to be one of"),
        ('lane = "bulk"', 'lane = "standard"\nhighest = "bulk"', "above its highest"),
        ("operator = true", 'operator = "yes"', "operator"),
        ("part = 0.8", "part = 1.5", "part"),
        ("part = 0.8", 'part = "most"', "part"),
        ("pixels = 921_600", "pixels = 921", "fewest"),
        ("sizes = ", "size = ", "sizes"),
        (r"\[anonymous\]", "[anonymous]\ntokens = 5", "anonymous"),
        (r"\[anonymous\]", "[nobody]", "there is no nobody"),
        ("", "=", "Invalid"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_with_the_place(edited, old, new, reason):
    path = edited(old, new)
    with pytest.raises(SettingsError, match=re.escape(str(path)) + ".*" + reason):
        read(path)
