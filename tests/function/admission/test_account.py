"""The arithmetic of tokens, over any course of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from function.admission.account import HOUR_MS, Account, Allowance, give_back, grant, take

ALLOWANCES = st.builds(
    Allowance, st.integers(0, 50), st.integers(1, 3 * HOUR_MS), st.none() | st.integers(0, 60)
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "back", "grant"]), st.integers(1, 20), st.integers(0, HOUR_MS)
    )
)
FREE = Allowance(10)


@given(ALLOWANCES, STEPS)
def test_no_token_is_made_from_nothing(allowance, steps):
    """Whatever happens, what was used in a period is at most its allowance and what was granted."""
    account, now, granted, kept, receipts = Account(), 1, 0, [], []
    for what, tokens, pause in steps:
        now += pause
        if what == "take":
            debit = take(account, allowance, tokens, now)
            account = debit.account
            if debit.receipt:
                assert debit.receipt.tokens == tokens
                receipts.append(debit.receipt)
                kept.append((now, debit.receipt))
        elif what == "back" and receipts:
            receipt = receipts.pop()
            kept = [each for each in kept if each[1] is not receipt]
            account = give_back(account, receipt, now)
        elif what == "grant":
            granted += tokens
            account = grant(account, tokens, now)
        assert 0 <= account.used <= allowance.tokens
        assert 0 <= account.granted <= granted
        spent_of_granted = sum(receipt.granted for _, receipt in kept)
        assert account.granted == granted - spent_of_granted
        in_period = [r.allowed for _, r in kept if r.ends == account.ends and now < account.ends]
        assert account.at(now).used == sum(in_period)
        if allowance.cap is not None:
            assert account.spent <= allowance.cap


@given(ALLOWANCES, st.integers(0, 50), st.lists(st.integers(1, 20)), st.integers(1, 60))
def test_who_comes_again_when_told_gets_the_tokens(allowance, granted, before, tokens):
    account, now = grant(Account(), granted, 1), 1
    for each in before:
        account = take(account, allowance, each, now).account
        now += 1000
    debit = take(account, allowance, tokens, now)
    if debit.receipt is None and debit.again_ms is not None:
        assert debit.again_ms > 0
        assert take(debit.account, allowance, tokens, now + debit.again_ms).receipt
        assert not take(debit.account, allowance, tokens, now + debit.again_ms - 1).receipt
    elif debit.receipt is None:
        for later in (1, HOUR_MS, 10 * HOUR_MS, 1000 * HOUR_MS):
            assert not take(debit.account, allowance, tokens, now + later).receipt


def test_an_allowance_is_full_again_a_period_after_its_first_token():
    account, now = Account(), 5
    for _ in range(10):
        debit = take(account, FREE, 1, now)
        account = debit.account
        assert debit.receipt
        now += 1000
    assert take(account, FREE, 1, now).again_ms == 5 + HOUR_MS - now
    assert take(account, FREE, 10, 5 + HOUR_MS).receipt


def test_granted_tokens_are_used_after_the_allowance_and_stay():
    account = take(grant(Account(), 5, 1), FREE, 12, 1).account
    assert (account.used, account.granted) == (10, 3)
    later = take(account, FREE, 10, 1 + HOUR_MS).account
    assert (later.used, later.granted) == (10, 3)


def test_a_refund_after_the_period_brings_back_only_what_was_granted():
    debit = take(grant(Account(), 5, 1), FREE, 12, 1)
    again = give_back(debit.account, debit.receipt, 1 + HOUR_MS)
    assert (again.left(FREE), again.granted) == (10, 5)
    third = take(again, FREE, 4, 1 + HOUR_MS)
    assert give_back(third.account, debit.receipt, 2 + HOUR_MS).used == 4


def test_a_cap_holds_for_granted_tokens_too():
    capped = Allowance(10, 24 * HOUR_MS, cap=6)
    account = take(grant(Account(), 100, 1), capped, 6, 1).account
    assert take(account, capped, 1, 2).again_ms == HOUR_MS - 1
    assert take(account, capped, 6, 1 + HOUR_MS).receipt
    assert take(account, capped, 7, 1 + HOUR_MS).again_ms is None


def test_another_tier_counts_at_once():
    account = take(Account(), FREE, 10, 1).account
    assert account.left(Allowance(50)) == 40
    assert account.left(Allowance(5)) == 0
