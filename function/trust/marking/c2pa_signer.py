"""Signs photos and clips with C2PA; needs the extra c2pa, and nothing of the network.

A signature comes last: whatever is put into a file after it makes it invalid.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

import c2pa

from function.problems import Problem, RetryLaterError
from function.trust.marking import c2pa_keys, certificates
from function.trust.marking.c2pa_manifest import SIGNABLE
from function.trust.marking.c2pa_reader import flaws
from function.trust.marking.c2pa_settings import offline
from function.trust.marking.c2pa_writing import SigningWork, write
from function.trust.statement import SourceType, Statement
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from function.trust.marking.c2pa_keys import DigestSigner
    from function.trust.marking.certificates import SigningCertificate

log = logging.getLogger("ember.trust")

_LOOK_S = 1.0  # how often it is seen whether a file has changed
_AGAIN_S = 5.0  # after which a failure may be gone
_TINY = (  # a GIF of one pixel
    b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
)


@dataclass(frozen=True, slots=True)
class SigningReferences:
    """Where that is with which is signed. Files are read again when they change.

    Attributes:
        certificates: a file in PEM: the certificate that signs, then those to its issuer.
        key: a file in PEM with its private key; None where something else signs.
        signer: what signs in place of a key.
        time_stamps: the address of an authority for time stamps (RFC 3161); None for none.
    """

    certificates: Path
    key: Path | None = None
    signer: DigestSigner | None = None
    time_stamps: str | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What the files had when they were read."""

    certificate: SigningCertificate
    signer: c2pa.Signer = field(repr=False)


class C2paSigner:
    """Signs outputs; any number of threads may do so at once.

    Args:
        references: to the certificates and the key.
        unsigned: whether what cannot be signed goes out unsigned; it is a problem otherwise.
        now: the time of day, with a time zone.
        clock: in seconds, for looking after changes.

    Attributes:
        on_failed: called, in any thread, with each output that could not be signed.

    Raises:
        SettingsError: what is referred to cannot sign, and what to do about it.
    """

    def __init__(
        self,
        references: SigningReferences,
        *,
        unsigned: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._references, self._unsigned = references, unsigned
        self.on_failed: Callable[[], None] = lambda: None
        self._now, self._clock = now, clock
        hosts = (references.time_stamps,) if references.time_stamps else ()
        self._context = c2pa.Context.from_dict(
            offline(hosts=tuple(urlsplit(each).netloc for each in hosts))
        )
        self._lock = threading.Lock()
        self._looked, self._state = clock(), self._stat()
        self._loaded = self._load()

    @property
    def not_after(self) -> datetime:
        """When the certificate, or another of its chain, ends to be valid."""
        return self._loaded.certificate.not_after

    @property
    def certificate(self) -> SigningCertificate:
        """With which is signed now."""
        return self._loaded.certificate

    def admits(self, media_type: str) -> bool:
        """Whether outputs of that type will be signed; False where they go out unsigned.

        Raises:
            Problem: `unsignable`; nothing has been done yet, so ask before any work.
        """
        if media_type in SIGNABLE:
            return True
        if self._unsigned:
            return False
        raise Problem("unsignable", f"{media_type} has no place for a signature (C2PA).")

    def sign(
        self,
        data: bytes,
        media_type: str,
        statement: Statement,
        ingredient: bytes | None = None,
        ingredient_type: str = "",
        *,
        consent: str | None = None,
    ) -> bytes | None:
        """A signed copy of a photo.

        Args:
            data: the file, with all its other marks.
            media_type: of the file.
            statement: what it says of itself.
            ingredient: the target as it came, whose own manifest is kept.
            ingredient_type: its media type; "" where it is not known.
            consent: the SHA-256 of the statement of consent, in hexadecimal; None for none.

        Returns:
            The signed file; None where it cannot be signed and may go out unsigned, which the
            answer has to say (`QualityWarning.UNSIGNED`).

        Raises:
            Problem: `unsignable`, or `signing_failed`, and it may not.
        """
        out = io.BytesIO()
        target = io.BytesIO(ingredient) if ingredient is not None else None
        work = SigningWork(media_type, statement, target, ingredient_type, consent)
        return out.getvalue() if self._sign(io.BytesIO(data), out, work) else None

    def sign_file(
        self,
        path: Path,
        media_type: str,
        statement: Statement,
        ingredient: Path | None = None,
        ingredient_type: str = "",
        *,
        consent: str | None = None,
    ) -> bool:
        """Sign a file in its place, whole or not at all; for clips. See `sign`.

        Returns:
            Whether it is signed; False where it may go out unsigned, and is as it was.
        """
        if not self.admits(media_type):
            return False
        partial = path.with_name(f".{path.name}.signed")
        try:
            with path.open("rb") as file, partial.open("w+b") as out, _opened(ingredient) as target:
                work = SigningWork(media_type, statement, target, ingredient_type, consent)
                signed = self._sign(file, out, work)
            if signed:
                partial.chmod(path.stat().st_mode & 0o777)
                partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return signed

    def _sign(self, source: BinaryIO, out: BinaryIO, work: SigningWork) -> bool:
        """Write a signed copy; False where that cannot be, and need not."""
        if not self.admits(work.media_type):
            return False
        self._look()
        loaded = self._loaded
        try:
            self._see_valid(loaded.certificate)
            write(source, out, work, loaded.signer, self._context)
        except (c2pa.C2paError, OSError) as error:
            log.error("an output could not be signed", extra={"reason": str(error)[:500]})  # noqa: TRY400
            self.on_failed()
            if self._unsigned:
                return False
            raise RetryLaterError(
                "signing_failed", "The result was made, and could not be signed (C2PA).", _AGAIN_S
            ) from None
        return True

    def _see_valid(self, certificate: SigningCertificate) -> None:
        """See that a certificate has not ended since it was read.

        Raises:
            OSError: it has.
        """
        if certificate.not_after <= self._now():
            raise OSError(f"the certificate ended on {certificate.not_after}")

    def _look(self) -> None:
        """Read the files again if they have changed; what makes no sense changes nothing."""
        with self._lock:
            if self._clock() < self._looked + _LOOK_S:
                return
            self._looked = self._clock()
            if (state := self._stat()) == self._state:
                return
            self._state = state
            try:
                self._loaded = self._load()
            except SettingsError as error:
                log.error("certificates stay as they were", extra={"reason": str(error)})  # noqa: TRY400
            else:
                until = self._loaded.certificate.not_after.isoformat()
                log.info("certificates read", extra={"not_after": until})

    def _stat(self) -> list[tuple[int, int, int] | None]:
        files = (self._references.certificates, self._references.key)
        return [_stamp(each) for each in files if each is not None]

    def _load(self) -> _Loaded:
        """Read the files, and prove that a reader takes what is signed with them.

        Raises:
            SettingsError: what is wrong, and what to do about it.
        """
        certificate = certificates.read(self._references.certificates, self._now())
        signer = _signer(certificate, self._references, None)
        _prove(signer, certificate)
        if stamps := self._references.time_stamps:
            signer = _signer(certificate, self._references, stamps)
        return _Loaded(certificate, signer)


def _signer(
    certificate: SigningCertificate, references: SigningReferences, time_stamps: str | None
) -> c2pa.Signer:
    """The library's signer. A key of a file is with the library, which takes less room for it.

    Raises:
        SettingsError: the key is not that of the certificate, or does not sign.
    """
    if references.key is not None:
        key = c2pa_keys.read(references.key, certificate)
        info = c2pa.C2paSignerInfo(
            certificate.algorithm.encode(),
            certificate.pem.encode(),
            key.pem,
            time_stamps.encode() if time_stamps else None,
        )
        return c2pa.Signer.from_info(info)
    outside = references.signer
    if outside is None:
        raise SettingsError(
            [f"{certificates.SETTING} needs {c2pa_keys.SETTING} or {c2pa_keys.COMMAND}."]
        )
    c2pa_keys.try_out(outside, certificate)
    return c2pa.Signer.from_callback(
        lambda data: certificate.raw(outside.sign(data)),
        c2pa.C2paSigningAlg[certificate.algorithm.name],
        certificate.pem,
        time_stamps,
    )


def _prove(signer: c2pa.Signer, certificate: SigningCertificate) -> None:
    """Sign a tiny picture and read it again.

    Raises:
        SettingsError: readers would not take the signature.
    """
    context = c2pa.Context.from_dict(offline())
    work = SigningWork("image/gif", Statement("", SourceType.COMPOSED, "Ember"))
    out = io.BytesIO()
    try:
        write(io.BytesIO(_TINY), out, work, signer, context)
        found = flaws(out.getvalue(), work.media_type)
    except c2pa.C2paError as error:
        found = [str(error)]
    if found:
        problem = (
            f"{certificates.SETTING}: readers of C2PA would not take what the certificate of"
            f" {certificate.subject} signs: {'; '.join(found)}. Get another certificate."
        )
        raise SettingsError([problem])


def _opened(path: Path | None) -> AbstractContextManager[BinaryIO | None]:
    return path.open("rb") if path else nullcontext()


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does; a secret that is mounted is a link to another then."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
