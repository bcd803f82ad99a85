"""Certificates and files to sign, for tests."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import av
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from PIL import Image
from pillow_heif import register_heif_opener

from function.trust.marking import certificate_authority
from function.trust.marking.c2pa_signer import C2paSigner, SigningReferences
from function.trust.marking.certificates import SignatureAlgorithm
from function.trust.statement import SourceType, Statement

if TYPE_CHECKING:
    from pathlib import Path

register_heif_opener()

NOW = datetime.now(UTC)
"""Readers know the time of day only, so certificates are valid at it."""
STATEMENT = Statement("request-1", SourceType.GENERATED, "Ember 1.2.3")
PILLOW = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/gif": "GIF",
    "image/tiff": "TIFF",
    "image/heic": "HEIF",
}


@dataclass(frozen=True)
class Files:
    """Files of an authority for trials."""

    certificates: Path
    key: Path
    anchors: str

    def signer(self, **options):
        return C2paSigner(SigningReferences(self.certificates, self.key), **options)


def make(folder, days=30, algorithm=SignatureAlgorithm.ES256, now=NOW):
    """An authority's files in a folder."""
    made = certificate_authority.make(now, days, algorithm)
    files = Files(folder / "certificates.pem", folder / "key.pem", made.authority.decode())
    files.certificates.write_bytes(made.chain)
    files.key.write_bytes(made.key)
    return files


def photo(media_type="image/jpeg", shade=90, **options):
    """A small photo of nobody in a format."""
    pixels = np.full((48, 64, 3), shade, np.uint8)
    pixels[8:40, 8:56] = (200, 30, 60)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, PILLOW[media_type], **options)
    return out.getvalue()


def clip(path, frames=4):
    """A small MP4, MOV, MKV or WebM of nobody, by the end of its name."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libvpx-vp9" if path.suffix == ".webm" else "libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            pixels = np.full((48, 64, 3), 40 * number, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        file.mux(stream.encode())
    return path


CURVE = ec.SECP256R1()
PURPOSE = ExtendedKeyUsageOID.EMAIL_PROTECTION


def issued(key, *, issuer=None, purpose=PURPOSE, authority=False, name="somebody", **usage):
    """A certificate for a key, by an issuer (its name and key) or by itself."""
    usages = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False,
    )  # fmt: skip
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    by, signing = issuer or (subject, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(x509.KeyUsage(**usages | {"digital_signature": True} | usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
    )
    if purpose:
        # OpenSSL wants it to be critical for time stamps (RFC 3161, section 2.3).
        critical = purpose == ExtendedKeyUsageOID.TIME_STAMPING
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=critical)
    return builder.sign(signing, hashes.SHA256())
