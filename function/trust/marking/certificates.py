"""Certificates that sign outputs, read from a file and judged before they are used.

What C2PA asks of them is in its specification, section 14.5.1 (X.509 certificates): an end entity
that may sign, for one of a few purposes, and that another certificate has issued.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

SETTING = "EMBER_C2PA_CERTIFICATES"
ANCHORS = "EMBER_C2PA_ANCHORS"

CLAIM_SIGNING = "1.3.6.1.4.1.62558.2.1"
"""The purpose that C2PA's own programme gives to certificates (c2pa-kp-claimSigning)."""
DOCUMENT_SIGNING = "1.3.6.1.5.5.7.3.36"
"""Signing of documents (id-kp-documentSigning, RFC 9336)."""
PURPOSES = (
    CLAIM_SIGNING,
    DOCUMENT_SIGNING,
    ExtendedKeyUsageOID.EMAIL_PROTECTION.dotted_string,
)
"""What a certificate has to be for, one of these, so that readers take its signature."""

_LEAST_RSA = 2048  # bits


class SignatureAlgorithm(StrEnum):
    """How is signed, as C2PA calls it; the key of the certificate decides."""

    ES256 = "es256"
    ES384 = "es384"
    ES512 = "es512"
    PS256 = "ps256"
    ED25519 = "ed25519"


_CURVES: dict[str, tuple[SignatureAlgorithm, hashes.HashAlgorithm]] = {
    "secp256r1": (SignatureAlgorithm.ES256, hashes.SHA256()),
    "secp384r1": (SignatureAlgorithm.ES384, hashes.SHA384()),
    "secp521r1": (SignatureAlgorithm.ES512, hashes.SHA512()),
}


@dataclass(frozen=True, slots=True)
class SigningCertificate:
    """A certificate that may sign, with those that lead to its issuer.

    Attributes:
        pem: the chain, the certificate itself first, without a root that has issued itself.
        algorithm: how its key signs.
        subject: whom it names.
        not_before: when the last of the chain begins to be valid.
        not_after: when the first of the chain ends to be valid.
        public_key: the key that proves signatures.
    """

    pem: str
    algorithm: SignatureAlgorithm
    subject: str
    not_before: datetime
    not_after: datetime
    public_key: Any = field(repr=False)

    def proves(self, signature: bytes, data: bytes) -> bool:
        """Whether the signature, in the form that C2PA has it (see `raw`), is of these bytes."""
        key = self.public_key
        try:
            if isinstance(key, ec.EllipticCurvePublicKey):
                half = len(signature) // 2
                parts = (int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))
                key.verify(encode_dss_signature(*parts), data, ec.ECDSA(_CURVES[key.curve.name][1]))
            elif isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, data, _PSS, hashes.SHA256())
            else:
                key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def raw(self, signature: bytes) -> bytes:
        """A signature as COSE has it (RFC 9053): of elliptic curves r and s, one after the other.

        Tools like OpenSSL and most services for keys give the two as ASN.1 instead.

        Raises:
            ValueError: it is neither.
        """
        if not isinstance(self.public_key, ec.EllipticCurvePublicKey):
            return signature
        size = (self.public_key.key_size + 7) // 8
        if len(signature) == 2 * size:
            return signature
        return b"".join(part.to_bytes(size) for part in decode_dss_signature(signature))


_PSS = padding.PSS(padding.MGF1(hashes.SHA256()), hashes.SHA256.digest_size)


def read(path: Path, now: datetime) -> SigningCertificate:
    """Read a file of certificates in PEM: the one that signs, then those that lead to its issuer.

    Args:
        path: of the file.
        now: with a time zone.

    Raises:
        SettingsError: it cannot sign, and what to do about it.
    """
    try:
        chain = x509.load_pem_x509_certificates(path.read_bytes())
        if problem := _problem(chain, now):
            raise SettingsError([f"{SETTING} ({path}) {problem}"])
        return _read(chain)
    except OSError as error:
        raise SettingsError([f"{SETTING} ({path}) cannot be read: {error.strerror}."]) from None
    except ValueError:
        raise SettingsError(
            [f"{SETTING} ({path}) is no file of certificates in PEM, or has a broken one."]
        ) from None


def read_anchors(path: Path) -> str:
    """The certificates of authorities whose signatures are trusted, in PEM.

    Raises:
        SettingsError: there are none in the file, or one is not that of an authority.
    """
    try:
        pem = path.read_text("ascii")
        others = [
            each for each in x509.load_pem_x509_certificates(pem.encode()) if not _authority(each)
        ]
    except OSError as error:
        raise SettingsError([f"{ANCHORS} ({path}) cannot be read: {error.strerror}."]) from None
    except ValueError:
        problem = "is no file of certificates in PEM, or has a broken one."
        raise SettingsError([f"{ANCHORS} ({path}) {problem}"]) from None
    if others:
        problem = f"has {_name(others[0])}, which is no authority: put the one that has issued it."
        raise SettingsError([f"{ANCHORS} ({path}) {problem}"])
    return pem


def algorithm_of(key: object) -> SignatureAlgorithm | None:
    """How a public key signs; None where C2PA has no algorithm for it."""
    if isinstance(key, ec.EllipticCurvePublicKey):
        return _CURVES[key.curve.name][0] if key.curve.name in _CURVES else None
    if isinstance(key, rsa.RSAPublicKey):
        return SignatureAlgorithm.PS256 if key.key_size >= _LEAST_RSA else None
    return SignatureAlgorithm.ED25519 if isinstance(key, ed25519.Ed25519PublicKey) else None


def _read(chain: list[x509.Certificate]) -> SigningCertificate:
    leaf = chain[0]
    sent = [each for each in chain if each is leaf or each.subject != each.issuer]
    algorithm = algorithm_of(leaf.public_key())
    assert algorithm is not None  # noqa: S101 (`_problem` has seen to it)
    return SigningCertificate(
        "".join(each.public_bytes(Encoding.PEM).decode() for each in sent),
        algorithm,
        _name(leaf),
        max(each.not_valid_before_utc for each in sent),
        min(each.not_valid_after_utc for each in sent),
        leaf.public_key(),
    )


def _problem(chain: list[x509.Certificate], now: datetime) -> str | None:
    """What keeps the first certificate of a chain from signing, and what to do; None for nothing.

    Raises:
        ValueError: an extension is broken.
    """
    leaf = chain[0]
    for each in chain:
        if each.not_valid_after_utc <= now:
            ended = f"{each.not_valid_after_utc:%Y-%m-%d}"
            return f"has a certificate that ended on {ended} ({_name(each)}); put a new one there."
        if each.not_valid_before_utc > now:
            begins = f"{each.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
            return f"has a certificate that is valid from {begins} only ({_name(each)})."
    if algorithm_of(leaf.public_key()) is None:
        return (
            "begins with a certificate whose key cannot sign for C2PA: get one with a key on the"
            " curve P-256, P-384 or P-521, an Ed25519 key, or an RSA key of 2048 bits or more."
        )
    if leaf.subject == leaf.issuer:
        return (
            "begins with a certificate that has issued itself, which no reader takes: put the one"
            " that signs first; for trials, `ember c2pa test-ca` makes one."
        )
    return _purpose(leaf) or _order(chain)


def _purpose(leaf: x509.Certificate) -> str | None:
    """What keeps a certificate from what it has to be for."""
    if _authority(leaf):
        return "begins with the certificate of an authority: put the one that signs first."
    usage = _extension(leaf, x509.KeyUsage)
    if usage is None or not usage.digital_signature:
        return "begins with a certificate whose key usage lacks digitalSignature: get one with it."
    purposes = _extension(leaf, x509.ExtendedKeyUsage) or ()
    if not any(each.dotted_string in PURPOSES for each in purposes):
        return (
            "begins with a certificate that is for something else: its extended key usage has to"
            f" have C2PA claim signing ({CLAIM_SIGNING}), documentSigning or emailProtection."
        )
    return None


def _order(chain: list[x509.Certificate]) -> str | None:
    """Whether each certificate is issued by the next."""
    for issued, issuer in pairwise(chain):
        try:
            issued.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature):
            return (
                f"has {_name(issuer)} after {_name(issued)}, which it has not issued: put each"
                " certificate before that of its issuer."
            )
    return None


def _authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _extension(certificate: x509.Certificate, kind: type[Any]) -> Any:
    """An extension of a certificate; None where it has none of that kind."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _name(certificate: x509.Certificate) -> str:
    """Whom a certificate names, in a word."""
    for kind in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
        if found := certificate.subject.get_attributes_for_oid(kind):
            return str(found[0].value)
    return certificate.subject.rfc4514_string()
