"""A certificate authority for trials, whose certificates say that nobody should trust them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from function.trust.marking.certificates import SignatureAlgorithm

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

ORGANISATION = "Ember test, NOT TRUSTED"
"""What each of its certificates names as its organisation."""

_CLOCKS = timedelta(hours=1)  # by which the clock of a reader may be behind


@dataclass(frozen=True, slots=True)
class TrialCertificates:
    """What the authority makes, each in PEM.

    Attributes:
        authority: its own certificate, which a reader has to trust for the others to be trusted.
        chain: the certificate that signs.
        key: its private key.
    """

    authority: bytes
    chain: bytes
    key: bytes = field(repr=False)


def make(
    now: datetime,
    days: int = 30,
    algorithm: SignatureAlgorithm = SignatureAlgorithm.ES256,
) -> TrialCertificates:
    """Make an authority and one certificate; the authority's own key is thrown away.

    Args:
        now: from when on they are valid, with a time zone.
        days: for how long.
        algorithm: how the certificate's key signs.
    """
    root, key = ec.generate_private_key(ec.SECP256R1()), _private_key(algorithm)
    issuer = _named("Ember test authority, NOT TRUSTED")
    valid = now - _CLOCKS, now + timedelta(days=days)
    made = _certificate((issuer, root), (issuer, root), valid, authority=True)
    name = _named("Ember test signer, NOT TRUSTED")
    signer = _certificate((name, key), (issuer, root), valid, authority=False)
    return TrialCertificates(
        made.public_bytes(Encoding.PEM),
        signer.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _certificate(
    subject: tuple[x509.Name, CertificateIssuerPrivateKeyTypes],
    issuer: tuple[x509.Name, CertificateIssuerPrivateKeyTypes],
    valid: tuple[datetime, datetime],
    *,
    authority: bool,
) -> x509.Certificate:
    """One certificate: whom it names and the key, whoever signs it and with which key."""
    public, issuing = subject[1].public_key(), issuer[1].public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject[0])
        .issuer_name(issuer[0])
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
        .add_extension(x509.BasicConstraints(authority, 0 if authority else None), critical=True)
        .add_extension(_usage(authority=authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing), critical=False)
    )
    if not authority:
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])
        builder = builder.add_extension(purpose, critical=False)
    return builder.sign(issuer[1], hashes.SHA256())


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )


def _private_key(algorithm: SignatureAlgorithm) -> CertificateIssuerPrivateKeyTypes:
    match algorithm:
        case SignatureAlgorithm.ES256:
            return ec.generate_private_key(ec.SECP256R1())
        case SignatureAlgorithm.ES384:
            return ec.generate_private_key(ec.SECP384R1())
        case SignatureAlgorithm.ES512:
            return ec.generate_private_key(ec.SECP521R1())
        case SignatureAlgorithm.PS256:
            return rsa.generate_private_key(65537, 2048)
        case SignatureAlgorithm.ED25519:
            return ed25519.Ed25519PrivateKey.generate()
