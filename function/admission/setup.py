"""From settings to the parts of admission; what needs an extra is imported when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.admission import policy as policies
from warmup.variables import SettingsError

if TYPE_CHECKING:
    from function.admission.caller import Authority
    from function.admission.policy import Policy
    from function.settings import Settings

_JWT = ("jwt_issuer", "jwt_audience", "jwt_jwks_url")


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
        from function.admission.keys import Keys

        return Keys(settings.keys)
    if settings.auth == "jwt":
        return _tokens(settings)
    return None


def _tokens(settings: Settings) -> Authority:
    issuer, audience, url = settings.jwt_issuer, settings.jwt_audience, settings.jwt_jwks_url
    if not (issuer and audience and url):
        missing = [f"EMBER_{each.upper()}" for each in _JWT if not getattr(settings, each)]
        raise SettingsError([f"EMBER_AUTH is jwt, which needs {', '.join(missing)}."])
    try:
        from function.admission.jwks import KeySet, fetcher
        from function.admission.tokens import Tokens
    except ModuleNotFoundError as error:
        raise SettingsError(
            [f"EMBER_AUTH is jwt, which needs {error.name}: pip install 'ember-function[auth]'"]
        ) from None
    return Tokens(
        KeySet(fetcher(url)),
        issuer=issuer,
        audience=audience,
        leeway_s=settings.jwt_leeway_s,
        tier_claim=settings.jwt_tier_claim,
        lane_claim=settings.jwt_lane_claim,
    )
