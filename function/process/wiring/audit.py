"""The audit from settings."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from function import __version__
from function.admission.policy import BUILT_IN
from function.extras import needing
from function.trust.audit import keyring
from function.trust.audit.chained import AuditRules, ChainedAudit
from function.trust.audit.log import NoAudit
from function.trust.audit.sinks.folder import FolderSink
from function.trust.audit.sinks.stdout import StdoutSink
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from function.background.jobs.erasure import SubjectData
    from function.settings.access import AccessSettings
    from function.settings.audit import AuditSettings
    from function.settings.gate import GateSettings
    from function.trust.audit.keyring import AuditKey
    from function.trust.audit.log import AuditLog

_SILENCE_S = 10.0
_WRITABLE = os.R_OK | os.W_OK | os.X_OK


def build_audit(
    settings: AuditSettings, access: AccessSettings | None = None, *, stream: int = 1
) -> AuditLog:
    """The audit that the settings want; it has to be started.

    Args:
        settings: where it goes, and how.
        access: names the policy, a digest of which stands in the first line.
        stream: where lines for `stdout` go; of commands, whose results are there, 2.

    Raises:
        SettingsError: the keys cannot be read, or the folder cannot be written to.
    """
    if settings.audit == "off":
        return NoAudit()
    key, *_ = audit_keys(settings)
    opening = {"version": __version__}
    if access:
        opening["policy"] = _digest(access.policy or BUILT_IN)
    rules = AuditRules(
        key,
        fail_open=settings.audit_fail == "open",
        names=settings.audit_subjects == "name",
        opening=opening,
    )
    if settings.audit == "stdout":
        return ChainedAudit(StdoutSink(stream), rules)
    if settings.audit.startswith("file:"):
        folder = Path(url2pathname(urlsplit(settings.audit).path))
        _check_writable(folder, f"EMBER_AUDIT is {settings.audit}")
        return ChainedAudit(FolderSink(folder, fsync=settings.audit_fsync), rules)
    return _bucket(settings, rules)


def kept_of_callers(gate: GateSettings) -> tuple[SubjectData, ...]:
    """What is kept of callers beside jobs, and deleted with them."""
    if gate.consent_list is None:
        return ()
    from function.trust.gate.enrolments import Enrolments

    return (Enrolments(gate.consent_list),)


def audit_keys(settings: AuditSettings) -> tuple[AuditKey, ...]:
    """The keys of the audit, the one that writes first; `KEYLESS` where there are none.

    Raises:
        SettingsError: they cannot be read.
    """
    if settings.audit_key is None:
        return (keyring.KEYLESS,)
    try:
        return keyring.read(settings.audit_key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError([f"EMBER_AUDIT_KEY, {settings.audit_key}: {reason}."]) from None


def _bucket(settings: AuditSettings, rules: AuditRules) -> AuditLog:
    from function.trust.audit.bucket import BucketUploads
    from function.trust.audit.sinks.spool import Spool, SpoolLimits

    with needing(f"EMBER_AUDIT={settings.audit}", "gcs"):
        from warmup.objects.gcs import GcsStore
    folder = settings.audit_spool or Path(tempfile.gettempdir()) / "ember-audit"
    _check_writable(folder, f"EMBER_AUDIT_SPOOL is {folder}")
    limits = SpoolLimits(
        settings.audit_window_s, settings.audit_spool_bytes, fsync=settings.audit_fsync
    )
    spool = Spool(folder, limits)
    uploads = BucketUploads(spool, GcsStore(_SILENCE_S), settings.audit.rstrip("/") + "/")
    return ChainedAudit(spool, rules, uploads)


def _digest(path: Path) -> str:
    """The first digits of the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _check_writable(folder: Path, what: str) -> None:
    """Make a folder that only we may use, or see that we may use it.

    Raises:
        SettingsError: neither can be done.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError([f"{what}: {error.strerror}."]) from None
    if not os.access(folder, _WRITABLE):
        raise SettingsError([f"{what}, which this process may not write to."])
