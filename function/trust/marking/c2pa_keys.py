"""Who signs: the key in a file, or a command that asks whoever has the key."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from function.trust.marking.certificates import SigningCertificate

SETTING = "EMBER_C2PA_KEY"
COMMAND = "EMBER_C2PA_SIGNER"

_COMMAND_S = 30.0


class DigestSigner(Protocol):
    """Signs bytes with a key that stays where it is: a service for keys, a module, a card."""

    def sign(self, data: bytes) -> bytes:
        """The signature of the bytes, with the algorithm of the certificate.

        Args:
            data: what is signed, itself and not its digest; some hundred bytes.

        Returns:
            Of elliptic curves r and s, as ASN.1 or one after the other.

        Raises:
            OSError: it cannot be had at the moment.
        """
        ...


@dataclass(frozen=True, slots=True)
class CommandSigner:
    """A command that reads bytes from standard input and writes their signature.

    Attributes:
        words: the command and its arguments.
    """

    words: tuple[str, ...]

    def sign(self, data: bytes) -> bytes:
        """See `DigestSigner`."""
        try:
            done = subprocess.run(  # noqa: S603 (the operator's own)
                self.words, input=data, capture_output=True, check=False, timeout=_COMMAND_S
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"it took more than {_COMMAND_S:g} seconds") from None
        if done.returncode:
            raise OSError(f"it ended with the exit code {done.returncode}")
        return done.stdout


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key that was read from a file; it is in no representation of it.

    Attributes:
        pem: the key, as PKCS #8.
    """

    pem: bytes = field(repr=False)


def read(path: Path, certificate: SigningCertificate) -> PrivateKey:
    """Read a private key in PEM that belongs to a certificate.

    Raises:
        SettingsError: it is none, or that of another certificate.
    """
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    except OSError as error:
        raise SettingsError([f"{SETTING} ({path}) cannot be read: {error.strerror}."]) from None
    except TypeError:
        problem = "has a password: keep the key without one, in a secret."
        raise SettingsError([f"{SETTING} ({path}) {problem}"]) from None
    except Exception:
        raise SettingsError([f"{SETTING} ({path}) is no private key in PEM."]) from None
    wanted = certificate.public_key
    if public != wanted.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo):
        problem = (
            f"{SETTING} ({path}) is not the key of the certificate of {certificate.subject}, which"
            " comes first in EMBER_C2PA_CERTIFICATES: put the two together."
        )
        raise SettingsError([problem])
    return PrivateKey(private)


def try_out(signer: DigestSigner, certificate: SigningCertificate) -> None:
    """Have something signed, and see that the certificate proves it.

    Raises:
        SettingsError: it does not, and what to do about it.
    """
    data = b"Ember looks whether it can sign."
    try:
        signature = certificate.raw(signer.sign(data))
        proven = certificate.proves(signature, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SettingsError([f"{COMMAND} cannot sign: {reason}."]) from None
    except ValueError:
        proven = False
    if not proven:
        problem = (
            f"{COMMAND} does not sign as the certificate of {certificate.subject} says: it has to"
            f" write a signature of what it reads, by {certificate.algorithm}, with the key of that"
            " certificate, and nothing else."
        )
        raise SettingsError([problem])
