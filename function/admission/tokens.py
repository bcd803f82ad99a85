"""JSON Web Tokens (RFC 7519) of an issuer that publishes its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

from function.admission.caller import SUBJECT, Caller, RejectedError

if TYPE_CHECKING:
    from function.admission.jwks import Key, KeySet

_MOST_CHARACTERS = 16 * 1024
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (jwt.ExpiredSignatureError, "The token has expired."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidAudienceError, "The token is for another audience."),
    (jwt.InvalidIssuerError, "The token is of another issuer."),
    (jwt.MissingRequiredClaimError, "The token lacks a claim: exp, iss, aud and sub are needed."),
    (jwt.InvalidSignatureError, "The token's signature is not right."),
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Checks tokens.

    Attributes:
        keys: the issuer's.
        issuer: what `iss` must be.
        audience: what `aud` must have.
        leeway_s: by how much the clocks may differ.
        tier_claim: which claim has the tier's name.
        lane_claim: which claim has the most urgent lane, where it is not the tier's.
    """

    keys: KeySet
    issuer: str
    audience: str
    leeway_s: float
    tier_claim: str
    lane_claim: str

    async def caller(self, credentials: str) -> Caller:
        """Who has these credentials."""
        if len(credentials) > _MOST_CHARACTERS:
            raise RejectedError("The token is too long.")
        try:
            header = jwt.get_unverified_header(credentials)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise RejectedError("That is no token.") from None
        identity = header.get("kid")
        key = await self.keys.find(identity if isinstance(identity, str) else None)
        if key is None:
            raise RejectedError("The token's key is not one of the issuer's.")
        return self._caller(self._claims(credentials, key))

    async def prepare(self) -> None:
        """Get ready for the first caller."""
        await self.keys.prepare()

    def _claims(self, token: str, key: Key) -> dict[str, Any]:
        """What the token says, once it is proven.

        What may have signed it follows from the key: the token's word alone (`none`, or HMAC with a
        public key for its secret) decides nothing.
        """
        try:
            return jwt.decode(
                token,
                key.material,
                algorithms=key.algorithms,
                issuer=self.issuer,
                audience=self.audience,
                leeway=self.leeway_s,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, TypeError, ValueError, RecursionError) as error:
            known = (words for kind, words in _REASONS if isinstance(error, kind))
            raise RejectedError(next(known, "The token cannot be accepted.")) from None

    def _caller(self, claims: dict[str, Any]) -> Caller:
        subject = claims["sub"]
        tier, lane = claims.get(self.tier_claim), claims.get(self.lane_claim)
        texts = [each for each in (subject, tier, lane) if each is not None]
        if not all(isinstance(each, str) for each in texts) or not SUBJECT.fullmatch(subject):
            raise RejectedError("The token's subject, tier or lane is no text that can be used.")
        email = claims.get("email") if claims.get("email_verified") is True else None
        return Caller(subject, tier, lane, email if isinstance(email, str) else None)
