"""Certificates and keys are judged at the start, with what to do about them."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from function.process.wiring.marking import reader, signer
from function.settings.marking import MarkingSettings
from function.trust.marking import certificate_authority, certificates
from function.trust.marking.c2pa_reader import ManifestState, read
from function.trust.marking.c2pa_signer import C2paSigner, SigningReferences
from tests.function.trust.marking.signing import CURVE, NOW, STATEMENT, Files, issued, make, photo
from warmup.settings.variables import SettingsError


def private(key, encryption=None):
    from cryptography.hazmat.primitives.serialization import NoEncryption

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


@pytest.fixture
def issuer():
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")]), ec.generate_private_key(
        CURVE
    )


@pytest.fixture
def put(tmp_path):
    """Write certificates and a key, and give where they are."""

    def write(key, *chain):
        files = Files(tmp_path / "certificates.pem", tmp_path / "key.pem", "")
        files.certificates.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in chain))
        files.key.write_bytes(private(key))
        return files

    return write


def refused(files, said, **options):
    with pytest.raises(SettingsError, match=said) as error:
        files.signer(**options)
    (problem,) = error.value.problems
    assert problem.endswith(".")
    return problem


def test_an_ended_certificate_ends_the_start(tmp_path):
    files = make(tmp_path, days=2, now=NOW - timedelta(days=5))
    ended = f"{NOW - timedelta(days=3):%Y-%m-%d}"
    said = refused(files, rf"ended on {ended} \(Ember test signer, NOT TRUSTED\); put a new one")
    assert str(files.certificates) in said


def test_one_that_is_not_valid_yet_ends_it_too(tmp_path):
    files = make(tmp_path)
    refused(files, "is valid from .* UTC only", now=lambda: NOW - timedelta(days=1))


def test_the_key_of_another_certificate_ends_it(tmp_path):
    (tmp_path / "other").mkdir()
    files, other = make(tmp_path), make(tmp_path / "other")
    other.key.replace(files.key)
    refused(files, "is not the key of the certificate of Ember test signer, NOT TRUSTED")


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(lambda: rsa.generate_private_key(65537, 1024), id="short RSA"),
        pytest.param(lambda: ec.generate_private_key(ec.SECP256K1()), id="another curve"),
        pytest.param(ed448.Ed448PrivateKey.generate, id="Ed448"),
        pytest.param(lambda: dsa.generate_private_key(2048), id="DSA"),
    ],
)
def test_a_key_that_c2pa_knows_no_algorithm_for_ends_it(put, issuer, key):
    made = key()
    refused(put(made, issued(made, issuer=issuer)), "get one with a key on the curve P-256")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"purpose": None}, "is for something else"),
        ({"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "is for something else"),
        ({"digital_signature": False, "key_agreement": True}, "lacks digitalSignature"),
        ({"authority": True, "key_cert_sign": True}, "begins with the certificate of an authority"),
    ],
)
def test_a_certificate_for_something_else_ends_it(put, issuer, options, said):
    key = ec.generate_private_key(CURVE)
    refused(put(key, issued(key, issuer=issuer, **options)), said)


@pytest.mark.parametrize("purpose", certificates.PURPOSES)
def test_each_purpose_of_c2pa_signs(put, purpose):
    root, key = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
    authority = issued(
        root, name="root", authority=True, key_cert_sign=True, digital_signature=False, purpose=None
    )
    leaf = issued(
        key, issuer=(authority.subject, root), purpose=x509.ObjectIdentifier(str(purpose))
    )
    signed = put(key, leaf, authority).signer().sign(photo(), "image/jpeg", STATEMENT)
    anchors = authority.public_bytes(Encoding.PEM).decode()
    found = read(signed, "image/jpeg", anchors)
    assert (found.state, found.signed_by) == (ManifestState.TRUSTED, "somebody")


def test_a_certificate_that_has_issued_itself_ends_it(put):
    key = ec.generate_private_key(CURVE)
    refused(put(key, issued(key)), "has issued itself.*`ember c2pa test-ca` makes one")


def test_certificates_in_the_wrong_order_end_it(put, issuer):
    key, other = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
    chain = issued(key, issuer=issuer), issued(other, issuer=issuer, name="stranger")
    refused(put(key, *chain), "has stranger after somebody, which it has not issued")


def test_one_that_lasts_shorter_than_its_issuer_decides_when_it_ends(put):
    root, key = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    files = put(key, issued(key, issuer=(name, root)), issued(root, name="root", authority=True))
    assert abs(files.signer().not_after - NOW - timedelta(days=1)) < timedelta(seconds=1)
    assert files.signer().certificate.pem.count("BEGIN") == 1  # a root is for readers to have


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no certificate", "is no file of certificates in PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "or has a broken one"),
        (b"", "is no file of certificates in PEM"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_has_none_ends_it(tmp_path, content, said):
    files = make(tmp_path)
    if content is None:
        files.certificates.unlink()
    else:
        files.certificates.write_bytes(content)
    refused(files, f"EMBER_C2PA_CERTIFICATES .*{said}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda pem: b"no key", "is no private key in PEM"),
        (lambda pem: pem.replace(b"M", b"N"), "is no private key in PEM"),
        (
            lambda pem: private(load_pem_private_key(pem, None), BestAvailableEncryption(b"x")),
            "has a password",
        ),
        (lambda pem: None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_without_a_usable_key_ends_it(tmp_path, change, said):
    files = make(tmp_path)
    content = change(files.key.read_bytes())
    if content is None:
        files.key.unlink()
    else:
        files.key.write_bytes(content)
    refused(files, f"EMBER_C2PA_KEY .*{said}")


def test_a_key_in_another_form_of_pem_signs(tmp_path):
    from cryptography.hazmat.primitives.serialization import NoEncryption

    files = make(tmp_path)
    key = load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    assert b"EC PRIVATE KEY" in files.key.read_bytes()
    assert files.signer().sign(photo(), "image/jpeg", STATEMENT)


def test_what_only_the_library_sees_is_said_as_well(tmp_path, put, issuer):
    """A certificate without a name of its key's issuer: no rule of ours, but one of C2PA."""
    key = ec.generate_private_key(CURVE)
    name, signing = issuer
    whole = issued(key, issuer=issuer)
    builder = (
        x509.CertificateBuilder()
        .subject_name(whole.subject)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
    )
    for each in whole.extensions:
        if not isinstance(each.value, x509.AuthorityKeyIdentifier):
            builder = builder.add_extension(each.value, each.critical)
    refused(put(key, builder.sign(signing, hashes.SHA256())), "readers of C2PA would not take")


# --- the authority for trials ---------------------------------------------------------------------


def test_everything_it_makes_says_that_nobody_should_trust_it():
    made = certificate_authority.make(NOW)
    for pem in (made.authority, made.chain):
        certificate = x509.load_pem_x509_certificate(pem)
        for kind in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME):
            (named,) = certificate.subject.get_attributes_for_oid(kind)
            assert "NOT TRUSTED" in named.value
    assert "PRIVATE" not in repr(made)


def ember(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "function", *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


def test_the_command_makes_files_that_sign_and_overwrites_none(tmp_path):
    folder = tmp_path / "new" / "authority"
    said = ember("c2pa", "test-ca", folder, "--algorithm", "ed25519", "--days", "3")
    paths = dict(re.findall(r"^EMBER_C2PA_(\w+)=(.*)$", said, re.MULTILINE))
    assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    files = Files(
        folder / "certificates.pem", folder / "key.pem", (folder / "authority.pem").read_text()
    )
    assert paths == {
        "CERTIFICATES": str(files.certificates),
        "KEY": str(files.key),
        "ANCHORS": str(folder / "authority.pem"),
    }
    signer = C2paSigner(SigningReferences(files.certificates, files.key))
    assert signer.not_after < datetime.now(UTC) + timedelta(days=3)
    signed = signer.sign(photo(), "image/jpeg", STATEMENT)
    assert read(signed, "image/jpeg", files.anchors).state is ManifestState.TRUSTED
    assert "File exists" in ember("c2pa", "test-ca", folder, code=74)


# --- from settings --------------------------------------------------------------------------------


def test_settings_make_a_signer(tmp_path):
    files = make(tmp_path)
    references = {"c2pa_certificates": files.certificates, "c2pa_key": files.key}
    assert signer(MarkingSettings()) is None
    assert signer(MarkingSettings(**references)).sign(photo(), "image/jpeg", STATEMENT)
    lenient = signer(MarkingSettings(**references, c2pa_fail="unsigned"))
    assert lenient.sign(b"no photo", "image/jpeg", STATEMENT) is None
    command = ("openssl", "dgst", "-sha256", "-sign", str(files.key))
    outside = MarkingSettings(c2pa_certificates=files.certificates, c2pa_signer=command)
    assert signer(outside).sign(photo(), "image/jpeg", STATEMENT)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"c2pa_key": Path("key.pem")}, "There is no EMBER_C2PA_CERTIFICATES"),
        ({"c2pa_certificates": Path("c.pem")}, "needs one of EMBER_C2PA_KEY and"),
        (
            {"c2pa_certificates": Path("c.pem"), "c2pa_key": Path("k"), "c2pa_signer": ("sign",)},
            "needs one of EMBER_C2PA_KEY and",
        ),
    ],
)
def test_settings_that_lack_something_end_the_start(given, said):
    with pytest.raises(SettingsError, match=said):
        signer(MarkingSettings(**given))


def test_without_the_extra_it_is_said_what_to_install(tmp_path, monkeypatch):
    files = make(tmp_path)
    monkeypatch.setitem(sys.modules, "c2pa", None)
    for name in [each for each in sys.modules if each.startswith("function.trust.marking.c2pa_")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SettingsError, match=r"needs c2pa: make install EXTRAS=c2pa"):
        signer(MarkingSettings(c2pa_certificates=files.certificates, c2pa_key=files.key))


def test_settings_make_a_reader(tmp_path):
    files = make(tmp_path)
    anchors = tmp_path / "authority.pem"
    anchors.write_text(files.anchors)
    signed = files.signer().sign(photo(), "image/jpeg", STATEMENT)
    trusting = reader(MarkingSettings(c2pa_anchors=anchors))
    assert trusting(signed, "image/jpeg").state is ManifestState.TRUSTED
    assert reader(MarkingSettings())(signed, "image/jpeg").state is ManifestState.VALID
    assert reader(MarkingSettings())(photo(), "image/jpeg") is None


@pytest.mark.parametrize("named", ["certificates", "key", "nothing"])
def test_authorities_that_are_none_end_the_start(tmp_path, named):
    files = make(tmp_path)
    path = {"certificates": files.certificates, "key": files.key}.get(named, tmp_path / named)
    said = {
        "certificates": "has Ember test signer, NOT TRUSTED, which is no authority",
        "key": "is no file of certificates in PEM",
        "nothing": "cannot be read: No such file or directory",
    }
    with pytest.raises(SettingsError, match=rf"EMBER_C2PA_ANCHORS \(.*\) {said[named]}"):
        reader(MarkingSettings(c2pa_anchors=path))


def test_without_the_extra_no_manifest_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("function.process.wiring.marking.find_spec", lambda name: None)
    assert reader(MarkingSettings()) is None
    anchors = tmp_path / "authority.pem"
    anchors.write_text(make(tmp_path).anchors)
    with pytest.raises(SettingsError, match=r"make install EXTRAS=c2pa"):
        reader(MarkingSettings(c2pa_anchors=anchors))
