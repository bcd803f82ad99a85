"""The audit as the settings want it; what cannot be is said at the start, and by which setting."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from function.admission.policy import BUILT_IN
from function.process.wiring.audit import build_audit
from function.settings.access import AccessSettings
from function.settings.audit import AuditSettings
from function.trust.audit import keyring
from function.trust.audit.keyring import KEYLESS
from function.trust.audit.log import NoAudit
from warmup.settings.variables import SettingsError

from .chains import lines, report, swap


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# of December\n{keyring.new()}\n\n# of November\n{keyring.new()}\n")
    return path


async def account(settings, **facts):
    """Start an audit, write a line, and end it."""
    audit = build_audit(settings, AccessSettings())
    await audit.start()
    await audit.write(swap("a", **facts))
    await audit.close(1.0)


def test_without_a_setting_nothing_is_written():
    assert isinstance(build_audit(AuditSettings()), NoAudit)


async def test_a_folder_with_a_key(tmp_path, keys):
    folder = tmp_path / "new" / "folder"
    await account(AuditSettings(audit=f"{folder.as_uri()}/", audit_key=keys))
    assert report(folder, keyring.read(keys)).faults == ()
    start, line, _ = lines(folder)
    assert {line["key"], start["key"]} == {keyring.read(keys)[0].id}
    assert start["policy"] == hashlib.sha256(BUILT_IN.read_bytes()).hexdigest()[:16]
    assert start["version"]


async def test_without_a_key_codes_are_plain(tmp_path):
    await account(AuditSettings(audit=tmp_path.as_uri()))
    assert report(tmp_path, (KEYLESS,)).faults == ()
    assert {line["key"] for line in lines(tmp_path)} == {""}


def test_an_old_key_still_proves_what_it_wrote(tmp_path, keys):
    new, old = keyring.read(keys)
    assert new.id != old.id
    assert new.digest(b"x") != old.digest(b"x") != KEYLESS.digest(b"x")
    assert new.code(b"x") != new.digest(b"x")


@pytest.mark.parametrize("key", [KEYLESS, keyring.AuditKey.of(b"k" * 32)])
def test_a_file_has_the_digest_of_its_bytes(tmp_path, key):
    data = bytes(range(256)) * 5000
    (tmp_path / "clip.mp4").write_bytes(data)
    assert key.digest(tmp_path / "clip.mp4") == key.digest(data)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "there is no key in it"),
        ("# nothing\n", "`ember audit key`"),
        ("secret", "line 1 is not 64 or more"),
        ("\n" + "ab" * 31, "line 2 is not 64 or more"),
    ],
)
def test_a_file_that_has_no_key_is_refused_without_showing_it(tmp_path, text, complaint):
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(SettingsError, match=complaint) as raised:
        build_audit(AuditSettings(audit="stdout", audit_key=path))
    assert "EMBER_AUDIT_KEY" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("path", "complaint"), [("none", "No such file"), ("", "Is a directory")])
def test_a_file_of_keys_that_is_none_is_said(tmp_path, path, complaint):
    with pytest.raises(SettingsError, match=f"EMBER_AUDIT_KEY, .*: {complaint}"):
        build_audit(AuditSettings(audit="stdout", audit_key=tmp_path / path))


@pytest.mark.parametrize("setting", ["audit", "spool"])
def test_a_folder_that_cannot_be_is_said_at_the_start(tmp_path, setting):
    (tmp_path / "file").write_text("")
    bad = tmp_path / "file" / "folder"
    settings = (
        AuditSettings(audit=bad.as_uri())
        if setting == "audit"
        else AuditSettings(audit="gs://audit/", audit_spool=bad)
    )
    with pytest.raises(SettingsError, match=rf"EMBER_AUDIT.* is .*{bad}: Not a directory"):
        build_audit(settings)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_for_reading_only_is_said_at_the_start(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(SettingsError, match="may not write to"):
        build_audit(AuditSettings(audit=tmp_path.as_uri()))


def test_what_serving_imports_of_it_is_light():
    heavy = "{'numpy', 'cv2', 'PIL', 'google', 'aiohttp', 'requests'}"
    code = f"import sys, function.process.wiring.audit; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "set()\n"
