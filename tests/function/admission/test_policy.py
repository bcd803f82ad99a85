"""Prices and tiers, and a policy file that is wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.admission.caller import Caller
from function.admission.policy import BUILT_IN, PricedJob, read
from function.problems import Problem
from function.request_context import Lane
from warmup.settings.variables import SettingsError

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
    assert PRICES.of(PricedJob(width * height)) == tokens


@pytest.mark.parametrize(("batch", "tokens"), [(1, 5), (2, 5), (3, 4), (100, 4)])
def test_three_or_more_in_a_batch_cost_four_instead_of_five(batch, tokens):
    assert PRICES.of(PricedJob(1920 * 1080), batch) == tokens


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 5))
def test_more_pixels_never_cost_less_and_nothing_is_free(one, other, batch):
    small, large = sorted((one, other))
    assert 0 < PRICES.of(PricedJob(small), batch) <= PRICES.of(PricedJob(large), batch)


def test_faces_and_sources_cost_what_the_policy_says(edited):
    text = "source = 2\nface = 1\nall_faces = 3\n"
    prices = read(edited(r"source = 1(.*\n){4}", text)).prices
    assert prices.of(PricedJob(1000, sources=3, faces=1)) == 1 + 2 * 2
    assert [prices.of(PricedJob(1000, faces=n)) for n in (1, 2, 4, 9, None)] == [1, 2, 4, 4, 4]


def test_a_swap_of_one_photo_with_one_source_of_usual_size_costs_what_its_target_does():
    for pixels in (300 * 300, 4000 * 3000, 4624 * 3460):
        assert PRICES.of(PricedJob(409_920, others=(pixels,), size=7_000_000)) == 1


@pytest.mark.parametrize(
    ("job", "tokens"),
    [
        (PricedJob(1000, sources=8, others=(1000,) * 8), 8),
        (PricedJob(1000, like=True, faces=1, others=(1000, 1000)), 2),
        (PricedJob(1000, others=(24_000_000,)), 2),
        (PricedJob(1000, others=(24_000_001,)), 3),
        (PricedJob(1000, others=(49_000_000,)), 6),
        (
            PricedJob(1000, sources=8, like=True, faces=1, others=(49_000_000,) * 9),
            1 + 7 + 1 + 9 * 5,
        ),
        (PricedJob(1000, size=15_999_999), 1),
        (PricedJob(1000, size=32_000_000), 4),
        (PricedJob(1920 * 1080, size=32_000_000), 5),
    ],
)
def test_what_else_takes_time_or_room_is_in_the_price(job, tokens):
    assert PRICES.of(job) == tokens


def test_a_batch_pays_for_its_bytes_in_full():
    assert PRICES.of(PricedJob(1000, size=80_000_000), 5) == 10


@pytest.mark.parametrize(
    ("pixels", "size", "tokens"),
    [(1, 1, 1), (16_000_000, 1, 1), (49_000_000, 1, 6), (1, 32_000_000, 4)],
)
def test_looking_costs_by_the_photo_s_pixels_and_bytes(pixels, size, tokens):
    assert PRICES.of_look(pixels, size) == tokens


def test_so_many_faces_are_covered_as_tokens_are_paid_for():
    assert [PRICES.covers(tokens) for tokens in (0, 1, 3)] == [None, 12, 36]


def test_a_policy_of_an_older_version_charges_for_what_it_names(edited):
    """Without the entries that came later."""
    path = edited("source = 1 ", "source = 0 ")
    text = path.read_text()
    for entry in ("like = ", "look = ", "large = ", "bytes = ", "faces = "):
        text = "".join(line for line in text.splitlines(True) if not line.startswith(entry))
    path.write_text(text.replace("                     # is only looked", "# is only looked"))
    prices = read(path).prices
    dear = PricedJob(1000, sources=8, like=True, others=(49_000_000,) * 9, size=99_000_000)
    assert (prices.of(dear), prices.of_look(49_000_000, 99_000_000)) == (1, 0)
    assert prices.covers(1) is None


def test_the_tiers_are_those_of_the_scheme():
    free, paid, vip = (POLICY.tiers[name] for name in ("free", "paid", "vip"))
    assert (free.tokens, free.refill_s) == (10, 3600)
    assert paid.tokens == 50
    assert paid.lane.before(free.lane)
    assert (vip.tokens, vip.lane) == (None, Lane.INTERACTIVE)
    assert [name for name, tier in POLICY.tiers.items() if tier.operator] == ["operator"]


def test_a_tier_may_want_a_label_on_its_outputs(edited):
    assert not any(tier.label for tier in POLICY.tiers.values())
    tiers = read(edited("# label = ", "label = ")).tiers.values()
    assert [tier.name for tier in tiers if tier.label] == ["free"]


def test_who_has_no_tier_has_the_usual_one():
    caller = Caller("ann").within(POLICY)
    assert (caller.tier, caller.highest) == (POLICY.tiers["free"], Lane.BULK)
    assert Caller("ann", "paid", "interactive").within(POLICY).highest is Lane.INTERACTIVE


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
        ("operator = true", 'label = "never"', "tiers.operator.label can be always only"),
        ("operator = true", 'label = ["always"]', "tiers.operator.label can be always only"),
        ("part = 0.8", "part = 1.5", "part"),
        ("part = 0.8", 'part = "most"', "part"),
        ("pixels = 921_600", "pixels = 921", "fewest"),
        ("sizes = ", "size = ", "sizes"),
        ("above = 16", "over = 16", "there is no prices.large.over"),
        ("each = 8_000_000", "each = 0", "prices.large.each has to be a whole number"),
        ("bytes = 8_000_000", "bytes = 0", "prices.bytes has to be a whole number"),
        ("faces = 12", "faces = 0", "prices.faces has to be a whole number"),
        (r"\[anonymous\]", "[anonymous]\ntokens = 5", "anonymous"),
        (r"\[anonymous\]", "[nobody]", "there is no nobody"),
        ("", "=", "Invalid"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_with_the_place(edited, old, new, reason):
    path = edited(old, new)
    with pytest.raises(SettingsError, match=re.escape(str(path)) + ".*" + reason):
        read(path)
