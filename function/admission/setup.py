"""From settings to the parts of admission; what needs an extra is imported when it is wanted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function import tasks
from function.admission import policy as policies
from function.admission.accounts import InMemoryAccounts
from function.admission.byte_budget import ByteBudget
from function.admission.degradation import Degradation, DegradationPolicy
from function.admission.load import LoadEstimator
from function.admission.quota import Quota
from function.extras import needing, needing_redis
from function.request_context import Lane
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from function.admission.accounts import AccountStore
    from function.admission.caller import Authority
    from function.admission.policy import Policy
    from function.settings import Settings


@dataclass(frozen=True, slots=True)
class AdmissionParts:
    """The parts of admission.

    Attributes:
        policy: what jobs cost and what callers may have.
        authority: knows callers; None where nobody has to say who he is.
        quota: takes tokens.
        queue: knows how long a request would wait.
        room: for bodies.
        ladder: what is done less well while the queue is long.
    """

    policy: Policy
    authority: Authority | None
    quota: Quota
    queue: LoadEstimator
    room: ByteBudget
    ladder: DegradationPolicy

    def look(self) -> tuple[Degradation, ...]:
        """What is done less well, as long as the queue is now."""
        if not self.ladder.rungs:
            return ()
        return self.ladder.look(self.queue.wait_s(Lane.STANDARD))

    async def running(self, _: object) -> AsyncIterator[None]:
        """Ask other services before the first request does; at the end, leave them."""
        work = [part.prepare() for part in (self.authority, self.quota) if part]
        preparing = [asyncio.create_task(each) for each in work]
        yield
        await tasks.end(*preparing)
        await self.quota.close()


_JWT = ("jwt_issuer", "jwt_audience", "jwt_jwks_url")


def parts(settings: Settings, places: Callable[[], int]) -> AdmissionParts:
    """All of them.

    Args:
        settings: the effective settings.
        places: tells how many requests may be in work at once.

    Raises:
        SettingsError: something for them is missing or makes no sense.
    """
    return AdmissionParts(
        policy=policy(settings),
        authority=authority(settings),
        quota=Quota(_store(settings), fail_open=settings.quota_fail == "open"),
        queue=LoadEstimator(places, settings.queue_limit),
        room=ByteBudget(settings.max_bodies_bytes, settings.max_body_bytes),
        ladder=DegradationPolicy(
            tuple(Degradation(each) for each in settings.degrade), settings.degrade_wait_s
        ),
    )


def policy(settings: Settings) -> Policy:
    """The policy.

    Raises:
        SettingsError: it makes no sense.
    """
    return policies.read(settings.policy or policies.BUILT_IN)


def authority(settings: Settings) -> Authority | None:
    """What knows callers; None where nobody has to say who he is.

    Raises:
        SettingsError: something for it is missing.
    """
    if settings.auth == "keys":
        if settings.keys is None:
            raise SettingsError(["EMBER_AUTH is keys, which needs EMBER_KEYS; see `ember keys`."])
        from function.admission.keys import ApiKeys

        return ApiKeys(settings.keys)
    if settings.auth == "jwt":
        return _tokens(settings)
    return None


def _store(settings: Settings) -> AccountStore:
    if settings.redis_url is None:
        return InMemoryAccounts()
    with needing_redis():
        from function.admission.redis_accounts import RedisAccounts

        return RedisAccounts(settings.redis_url, settings.redis_timeout_s)


def _tokens(settings: Settings) -> Authority:
    issuer, audience, url = settings.jwt_issuer, settings.jwt_audience, settings.jwt_jwks_url
    if not (issuer and audience and url):
        missing = [f"EMBER_{each.upper()}" for each in _JWT if not getattr(settings, each)]
        raise SettingsError([f"EMBER_AUTH is jwt, which needs {', '.join(missing)}."])
    with needing("EMBER_AUTH is jwt, which", "auth"):
        from function.admission.jwks import KeySet, fetcher
        from function.admission.tokens import Tokens
    return Tokens(
        KeySet(fetcher(url)),
        issuer=issuer,
        audience=audience,
        leeway_s=settings.jwt_leeway_s,
        tier_claim=settings.jwt_tier_claim,
        lane_claim=settings.jwt_lane_claim,
    )
