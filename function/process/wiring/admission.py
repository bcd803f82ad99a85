"""Admission from settings; what needs an extra is imported when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.admission import policy as policies
from function.admission.account_store import InMemoryAccounts
from function.admission.admission import Admission
from function.admission.byte_budget import ByteBudget
from function.admission.degradation import Degradation, DegradationPolicy
from function.admission.load import LoadEstimator
from function.admission.quota import Quota
from function.extras import needing, needing_redis
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.admission.account_store import AccountStore
    from function.admission.caller import Authority
    from function.admission.policy import Policy
    from function.settings.access import AccessSettings, RedisSettings
    from function.settings.requests import RequestSettings


def build_admission(
    access: AccessSettings,
    redis: RedisSettings,
    requests: RequestSettings,
    slots: Callable[[], int],
) -> Admission:
    """All of admission; `slots` gives how many requests may be in work at once.

    Raises:
        SettingsError: something for it is missing or makes no sense.
    """
    load = LoadEstimator(slots, requests.queue_limit)
    return Admission(
        policy=policy(access),
        authority=_authority(access),
        quota=Quota(_accounts(redis), fail_open=redis.quota_fail == "open"),
        load=load,
        bodies=ByteBudget(requests.max_bodies_bytes, requests.max_body_bytes, load.wait_s),
        degradation=DegradationPolicy(
            tuple(Degradation(each) for each in requests.degrade), requests.degrade_wait_s
        ),
        timeout_s=requests.request_timeout_s,
    )


def policy(access: AccessSettings) -> Policy:
    """What jobs cost and what callers may have.

    Raises:
        SettingsError: it makes no sense.
    """
    return policies.read(access.policy or policies.BUILT_IN)


def _authority(access: AccessSettings) -> Authority | None:
    """What knows callers; None where nobody has to say who he is."""
    if access.auth == "keys":
        if access.keys is None:
            raise SettingsError(["EMBER_AUTH is keys, which needs EMBER_KEYS; see `ember keys`."])
        from function.admission.keys import ApiKeys

        return ApiKeys(access.keys)
    return _tokens(access) if access.auth == "jwt" else None


def _tokens(access: AccessSettings) -> Authority:
    issuer, audience, url = access.jwt_issuer, access.jwt_audience, access.jwt_jwks_url
    if not (issuer and audience and url):
        needed = {"ISSUER": issuer, "AUDIENCE": audience, "JWKS_URL": url}
        missing = ", ".join(f"EMBER_JWT_{name}" for name, value in needed.items() if not value)
        raise SettingsError([f"EMBER_AUTH is jwt, which needs {missing}."])
    with needing("EMBER_AUTH is jwt, which", "auth"):
        from function.admission.jwks import KeySet, fetcher
        from function.admission.tokens import Tokens
    return Tokens(
        KeySet(fetcher(url)),
        issuer=issuer,
        audience=audience,
        leeway_s=access.jwt_leeway_s,
        tier_claim=access.jwt_tier_claim,
        lane_claim=access.jwt_lane_claim,
    )


def _accounts(redis: RedisSettings) -> AccountStore:
    if redis.redis_url is None:
        return InMemoryAccounts()
    with needing_redis():
        from function.admission.redis_accounts import RedisAccounts

        return RedisAccounts(redis.redis_url, redis.redis_timeout_s)
