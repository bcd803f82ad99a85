"""Signed statements of consent: JSON Web Tokens (RFC 7519) with keys that the operator names.

    {"sub": "who agrees", "exp": …, "iss": "who asked", "purpose": "for what", "photos": ["SHA…"]}

`sub` and `exp` have to be there. `photos` binds the token to files: each source has to be one of
them; without it, it is good for any photo until it expires.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from function.admission.jwks import Key, algorithms_of, keys_of
from function.trust.gate.consent import (
    LONGEST,
    LONGEST_TOKEN,
    ConsentKind,
    ConsentStatement,
    digest_of,
    is_text,
)
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LEEWAY_S = 30
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((rsa.RSAPublicKey,), "RSA"),
    ((ec.EllipticCurvePublicKey,), "EC"),
    ((ed25519.Ed25519PublicKey, ed448.Ed448PublicKey), "OKP"),
)


class SignedConsent:
    """Reads signed statements.

    Args:
        keys: by `kid`; the only one also by None.
    """

    def __init__(self, keys: Mapping[str | None, Key]) -> None:
        self._keys = keys

    @classmethod
    def of(cls, path: Path) -> SignedConsent:
        """One with the keys of a file.

        Raises:
            SettingsError: there is no public key in it.
        """
        try:
            data = path.read_bytes()
            if b"-----BEGIN" in data:
                return cls({None: _pem(data)})
            return cls(keys_of(data))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, UnsupportedAlgorithm):
            raise SettingsError(
                [f"EMBER_CONSENT_KEYS: {path} has no public key, neither as JWKS nor as PEM."]
            ) from None

    def read(self, token: str, sources: Sequence[bytes]) -> ConsentStatement:
        """What a token says; see `ConsentTokens`."""
        if len(token) > LONGEST_TOKEN:
            raise ValueError("The token of consent is too long.")
        claims = self._claims(token)
        subject, photos = claims["sub"], claims.get("photos")
        purpose, issuer = claims.get("purpose", ""), claims.get("iss", "")
        if not all(map(_of_use, (subject, purpose))):
            raise ValueError("`sub` or `purpose` of the token of consent is no text of use.")
        if photos is not None:
            known = set(map(str, photos)) if isinstance(photos, list) else set()
            if not sources or not {hashlib.sha256(each).hexdigest() for each in sources} <= known:
                raise ValueError("The token of consent is for other photos.")
        return ConsentStatement(
            ConsentKind.SIGNED, digest_of(token), purpose, subject, str(issuer)[:LONGEST]
        )

    def _claims(self, token: str) -> dict[str, Any]:
        """What the token says, once it is proven; its key decides what may have signed it."""
        try:
            identity = jwt.get_unverified_header(token).get("kid")
            key = self._keys.get(identity) or self._keys.get(None)
            if key is None:
                raise ValueError("The token of consent is signed with a key that is not known.")
            return jwt.decode(
                token,
                key.material,
                algorithms=key.algorithms,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "sub"], "verify_aud": False},
            )
        except jwt.ExpiredSignatureError:
            raise ValueError("The token of consent has expired.") from None
        except (jwt.PyJWTError, ArithmeticError, TypeError, RecursionError):
            raise ValueError("The token of consent cannot be accepted.") from None


def _of_use(claim: object) -> bool:
    return isinstance(claim, str) and len(claim) <= LONGEST and is_text(claim)


def _pem(data: bytes) -> Key:
    material = load_pem_public_key(data)
    for kinds, name in _KINDS:
        if isinstance(material, kinds):
            return Key(material, algorithms_of(name))
    raise ValueError("a key of this kind signs no tokens")
