"""Outputs are signed with C2PA, and what others signed is read and judged."""

from __future__ import annotations

import http.server
import io
import logging
import os
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import c2pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from PIL import Image

from function.problems import Problem
from function.trust.marking import metadata
from function.trust.marking.c2pa_keys import CommandSigner
from function.trust.marking.c2pa_manifest import SIGNABLE
from function.trust.marking.c2pa_reader import (
    BrokenManifestError,
    FoundAction,
    FoundIngredient,
    ManifestState,
    read,
)
from function.trust.marking.c2pa_settings import offline
from function.trust.marking.c2pa_signer import C2paSigner, SigningReferences
from function.trust.marking.certificates import SignatureAlgorithm
from function.trust.statement import SourceType, Statement
from tests.function.trust.marking.signing import (
    CURVE,
    NOW,
    PILLOW,
    STATEMENT,
    clip,
    issued,
    make,
    photo,
)
from warmup.settings.variables import SettingsError

DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def signer(files):
    return files.signer()


# --- what a signed file says ----------------------------------------------------------------------


@pytest.mark.parametrize("media_type", PILLOW)
def test_a_photo_of_each_format_is_trusted_where_its_authority_is(signer, files, media_type):
    signed = signer.sign(photo(media_type), media_type, STATEMENT, photo(), "image/jpeg")
    assert read(signed, media_type, files.anchors).state is ManifestState.TRUSTED
    assert read(signed, "", files.anchors).state is ManifestState.TRUSTED
    stranger = read(signed, media_type)
    assert (stranger.state, stranger.valid) == (ManifestState.VALID, True)
    assert [error.partition(":")[0] for error in stranger.errors] == ["signingCredential.untrusted"]
    before, after = (
        Image.open(io.BytesIO(each)).convert("RGB") for each in (photo(media_type), signed)
    )
    assert before.tobytes() == after.tobytes()


def test_an_animation_keeps_its_frames(signer, files):
    first, *rest = [Image.new("L", (32, 32), 40 * number) for number in range(3)]
    out = io.BytesIO()
    first.save(out, "GIF", save_all=True, append_images=rest)
    signed = signer.sign(out.getvalue(), "image/gif", STATEMENT)
    assert read(signed, "image/gif", files.anchors).state is ManifestState.TRUSTED
    assert Image.open(io.BytesIO(signed)).n_frames == 3


def test_what_it_says(signer, files):
    data, target = photo(), photo("image/png")
    signed = signer.sign(data, "image/jpeg", STATEMENT, target, "image/png", consent=DIGEST)
    found = read(signed, "image/jpeg", files.anchors)
    assert found.signed_by == "Ember test, NOT TRUSTED, Ember test signer, NOT TRUSTED"
    assert found.software.startswith("Ember 1.2.3")
    assert found.actions == (
        FoundAction("c2pa.opened"),
        FoundAction("c2pa.edited", SourceType.GENERATED.uri, "Ember 1.2.3"),
    )
    assert found.ingredients == (FoundIngredient("parentOf", "image/png"),)
    assert (found.request_id, found.consent, found.errors) == ("request-1", DIGEST, ())
    assert (found.manifests, found.signed_at) == (1, "")
    assert len(signed) - len(data) < 5000  # without pictures of pictures


def test_without_a_target_it_is_new(signer, files):
    statement = Statement("request-2", SourceType.COMPOSED, "Ember 1.2.3")
    found = read(signer.sign(photo(), "image/jpeg", statement), "image/jpeg", files.anchors)
    assert found.state is ManifestState.TRUSTED
    assert [each.action for each in found.actions] == ["c2pa.created"]
    assert found.actions[0].source_type == SourceType.COMPOSED.uri
    assert (found.ingredients, found.consent) == ((), "")


@pytest.mark.parametrize("media_type", PILLOW)
def test_a_changed_byte_of_a_pixel_makes_it_invalid(signer, files, media_type):
    data = photo(media_type)
    signed = bytearray(signer.sign(data, media_type, STATEMENT))
    pixels = data[len(data) // 2 : len(data) // 2 + 24]  # pixels, wherever they are now
    signed[signed.index(pixels) + 8] ^= 1
    found = read(bytes(signed), media_type, files.anchors)
    assert (found.state, found.valid) == (ManifestState.INVALID, False)
    assert "Hash.mismatch" in found.errors[0]


def test_the_manifest_of_a_target_survives_one_swap_after_another(signer, files):
    first = signer.sign(photo(), "image/jpeg", STATEMENT, photo("image/png"), "image/png")
    again = Statement("request-2", SourceType.COMPOSED, "Ember 1.2.4")
    second = signer.sign(photo("image/webp", 20), "image/webp", again, first, "image/jpeg")
    third = signer.sign(photo("image/png", 30), "image/png", STATEMENT, second, "image/webp")
    found = read(third, "image/png", files.anchors)
    assert (found.state, found.manifests, found.errors) == (ManifestState.TRUSTED, 3, ())
    (ingredient,) = found.ingredients
    assert (ingredient.format, ingredient.relationship) == ("image/webp", "parentOf")
    assert ingredient.signed_by == found.signed_by
    # Who signs need not trust the authorities of others; who reads judges them anew.
    assert set(ingredient.errors) <= {"signingCredential.untrusted"}


def test_a_target_whose_manifest_is_broken_says_so_as_an_ingredient(signer, files):
    target = bytearray(signer.sign(photo(), "image/jpeg", STATEMENT))
    target[-20] ^= 1
    signed = signer.sign(photo(), "image/jpeg", STATEMENT, bytes(target), "image/jpeg")
    found = read(signed, "image/jpeg", files.anchors)
    assert found.valid
    assert "assertion.dataHash.mismatch" in found.ingredients[0].errors


@pytest.mark.parametrize(
    ("target", "media_type"),
    [(b"BM", "image/bmp"), (photo()[:300], "image/jpeg"), (b"nothing", ""), (b"x", "image/png")],
)
def test_a_target_that_has_no_place_for_a_manifest_is_an_ingredient_all_the_same(
    signer, files, target, media_type
):
    signed = signer.sign(photo(), "image/jpeg", STATEMENT, target, media_type)
    found = read(signed, "image/jpeg", files.anchors)
    assert found.state is ManifestState.TRUSTED
    assert [each.action for each in found.actions] == ["c2pa.opened", "c2pa.edited"]
    assert [each.relationship for each in found.ingredients] == ["parentOf"]


def test_a_manifest_that_somebody_broke_on_purpose_keeps_no_output_from_being_signed(
    signer, files, tmp_path, caplog
):
    """The library takes this one as an ingredient, and fails when it signs."""
    target = signer.sign(photo(), "image/jpeg", STATEMENT).replace(b"request-1", b"\xffequest-1")
    path, broken = clip(tmp_path / "clip.mp4"), tmp_path / "target.jpg"
    broken.write_bytes(target)
    for signed, kind in (
        (signer.sign(photo(), "image/jpeg", STATEMENT, target, "image/jpeg"), "image/jpeg"),
        (
            signer.sign_file(path, "video/mp4", STATEMENT, broken, "image/jpeg") and path,
            "video/mp4",
        ),
    ):
        found = read(signed, kind, files.anchors)
        assert (found.state, found.manifests) == (ManifestState.TRUSTED, 1)
        assert [each.relationship for each in found.ingredients] == ["parentOf"]
    said = "signed without what the target says of itself"
    assert [each.message for each in caplog.records] == [said, said]


@pytest.mark.parametrize(("suffix", "kind"), [(".mp4", "video/mp4"), (".mov", "video/quicktime")])
def test_a_clip_is_signed_in_its_place(signer, files, tmp_path, suffix, kind):
    path, target = clip(tmp_path / f"clip{suffix}"), clip(tmp_path / "target.mp4", 3)
    path.chmod(0o640)
    assert signer.sign_file(path, kind, STATEMENT, target, "video/mp4", consent=DIGEST)
    found = read(path, kind, files.anchors)
    assert (found.state, found.consent) == (ManifestState.TRUSTED, DIGEST)
    assert found.ingredients == (FoundIngredient("parentOf", "video/mp4"),)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == sorted({path, target})
    data = bytearray(path.read_bytes())
    data[data.index(b"mdat") + 40] ^= 1
    assert read(bytes(data), kind, files.anchors).state is ManifestState.INVALID


def test_threads_may_sign_at_once(signer, files):
    with ThreadPoolExecutor(4) as pool:
        requests = [Statement(str(each), SourceType.GENERATED, "Ember 1") for each in range(40)]
        signed = list(pool.map(lambda each: signer.sign(photo(), "image/jpeg", each), requests))
    found = [read(each, "image/jpeg", files.anchors) for each in signed]
    assert [each.request_id for each in found] == [each.request_id for each in requests]
    assert {each.state for each in found} == {ManifestState.TRUSTED}


def test_metadata_is_put_in_before_and_is_signed_with_the_rest(signer, files):
    for media_type in PILLOW.keys() - {"image/tiff"}:  # which is never an output
        data = metadata.mark(photo(media_type), STATEMENT)
        signed = signer.sign(data, media_type, STATEMENT, data, media_type)
        assert read(signed, media_type, files.anchors).state is ManifestState.TRUSTED
        assert metadata.read(signed) == replace(metadata.read(data), manifest=True)
        again = metadata.mark(signed, Statement("other", SourceType.COMPOSED, "Ember 1"))
        assert read(again, media_type, files.anchors).state is ManifestState.INVALID


# --- what cannot be signed ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["video/x-matroska", "video/webm", "image/bmp"])
def test_a_format_without_a_place_is_refused_before_any_work_or_goes_out_unsigned(
    files, signer, tmp_path, kind
):
    path = clip(tmp_path / "clip.webm")
    before = path.read_bytes()
    with pytest.raises(Problem, match="has no place for a signature") as refused:
        signer.admits(kind)
    assert refused.value.code == "unsignable"
    with pytest.raises(Problem, match="has no place for a signature"):
        signer.sign_file(path, kind, STATEMENT)
    lenient = files.signer(unsigned=True)
    assert not lenient.admits(kind)
    assert lenient.sign(photo(), kind, STATEMENT) is None
    assert not lenient.sign_file(path, kind, STATEMENT)
    assert path.read_bytes() == before
    assert read(path, kind) is None


def test_the_library_can_sign_what_it_is_said_to():
    assert set(c2pa.Builder.get_supported_mime_types()) >= SIGNABLE


def test_what_cannot_be_signed_is_a_problem_or_goes_out_unsigned(files, signer, tmp_path, caplog):
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"no clip at all")
    for sign in (
        lambda: signer.sign(b"no photo", "image/png", STATEMENT),
        lambda: signer.sign_file(path, "video/mp4", STATEMENT),
    ):
        with pytest.raises(Problem) as failed:
            sign()
        assert (failed.value.code, failed.value.kind.status) == ("signing_failed", 503)
        assert failed.value.headers["Retry-After"] == "5"
    assert {each.message for each in caplog.records} == {"an output could not be signed"}
    lenient = files.signer(unsigned=True)
    assert lenient.sign(b"no photo", "image/png", STATEMENT) is None
    assert not lenient.sign_file(path, "video/mp4", STATEMENT)
    assert path.read_bytes() == b"no clip at all"
    assert list(tmp_path.iterdir()) == [path]


def test_a_certificate_that_ends_while_serving_signs_no_more(files, caplog):
    now = NOW
    ending = files.signer(now=lambda: now)
    assert ending.not_after - NOW > timedelta(days=29)
    assert ending.sign(photo(), "image/jpeg", STATEMENT)
    now = ending.not_after
    with pytest.raises(Problem) as failed:
        ending.sign(photo(), "image/jpeg", STATEMENT)
    assert failed.value.code == "signing_failed"
    assert "the certificate ended" in caplog.records[-1].reason


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", SignatureAlgorithm)
def test_each_kind_of_key_signs(tmp_path, algorithm):
    files = make(tmp_path, algorithm=algorithm)
    signer = files.signer()
    assert signer.certificate.algorithm is algorithm
    signed = signer.sign(photo(), "image/jpeg", STATEMENT)
    assert read(signed, "image/jpeg", files.anchors).state is ManifestState.TRUSTED


def test_the_key_is_in_no_log_and_in_no_representation(files, caplog):
    with caplog.at_level(logging.DEBUG):
        signer = files.signer()
        signer.sign(photo(), "image/jpeg", STATEMENT)
        with pytest.raises(Problem):
            signer.sign(b"no photo", "image/png", STATEMENT)
    secret = files.key.read_text().splitlines()[1]
    shown = repr(signer) + repr(vars(signer)) + str([vars(each) for each in caplog.records])
    assert "not_after" in shown
    assert secret[:20] not in shown
    assert "PRIVATE" not in shown


@pytest.mark.parametrize("algorithm", SignatureAlgorithm)
def test_a_command_signs_where_the_key_is_elsewhere(tmp_path, algorithm):
    files = make(tmp_path, algorithm=algorithm)
    if algorithm is SignatureAlgorithm.ED25519:
        words = (
            *OPENSSL,
            "pkeyutl",
            "-sign",
            "-rawin",
            "-inkey",
            str(files.key),
            "-in",
            "/dev/stdin",
        )
        words = ("sh", "-c", f"cat > {tmp_path}/data && {' '.join(words[:-1])} {tmp_path}/data")
    else:
        digest = f"-sha{algorithm[2:]}"
        words = (*OPENSSL, "dgst", digest, "-sign", str(files.key))
        if algorithm is SignatureAlgorithm.PS256:
            words += ("-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest")
    signer = C2paSigner(SigningReferences(files.certificates, signer=CommandSigner(words)))
    signed = signer.sign(photo(), "image/jpeg", STATEMENT)
    assert read(signed, "image/jpeg", files.anchors).state is ManifestState.TRUSTED


OPENSSL = ("openssl",)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("false",), "cannot sign: it ended with the exit code 1"),
        (("no-such-command",), "cannot sign: No such file or directory"),
        (("echo", "signed"), "does not sign as the certificate of Ember test signer"),
        (("cat",), "does not sign as the certificate of Ember test signer"),
    ],
)
def test_a_command_that_does_not_sign_ends_the_start(files, words, said):
    with pytest.raises(SettingsError, match=said):
        C2paSigner(SigningReferences(files.certificates, signer=CommandSigner(words)))


def test_a_command_that_fails_later_is_a_failed_signature(files, tmp_path, caplog):
    script = tmp_path / "sign"
    script.write_text(f"#!/bin/sh\nexec openssl dgst -sha256 -sign {files.key}\n")
    script.chmod(0o700)
    signer = C2paSigner(SigningReferences(files.certificates, signer=CommandSigner((str(script),))))
    script.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(Problem) as failed:
        signer.sign(photo(), "image/jpeg", STATEMENT)
    assert failed.value.code == "signing_failed"


def test_nothing_that_signs_is_an_error(files):
    with pytest.raises(SettingsError, match="needs EMBER_C2PA_KEY or EMBER_C2PA_SIGNER"):
        C2paSigner(SigningReferences(files.certificates))


# --- new certificates -----------------------------------------------------------------------------


def mount(folder, made):
    """What Kubernetes does when a secret changes: a link goes to another folder at once."""
    link = folder / "..new"
    link.symlink_to(made)
    link.replace(folder / "..data")


def test_new_certificates_are_taken_as_they_come(tmp_path):
    clock = 0.0
    old, new = tmp_path / "1", tmp_path / "2"
    old.mkdir()
    new.mkdir()
    make(old, days=10)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name in ("certificates.pem", "key.pem"):
        (mounted / name).symlink_to(f"..data/{name}")
    mount(mounted, old)
    references = SigningReferences(mounted / "certificates.pem", mounted / "key.pem")
    signer = C2paSigner(references, clock=lambda: clock)
    until = signer.not_after
    fresh = make(new, days=20)
    mount(mounted, new)
    signer.sign(photo(), "image/jpeg", STATEMENT)
    assert signer.not_after == until  # it looks once in a while
    clock = 2.0
    signed = signer.sign(photo(), "image/jpeg", STATEMENT)
    assert signer.not_after > until
    assert read(signed, "image/jpeg", fresh.anchors).state is ManifestState.TRUSTED


def test_new_certificates_that_make_no_sense_change_nothing(tmp_path, caplog):
    clock = 0.0
    files = make(tmp_path)
    signer = files.signer(clock=lambda: clock)
    files.certificates.write_text("soon")
    clock = 2.0
    signed = signer.sign(photo(), "image/jpeg", STATEMENT)
    assert read(signed, "image/jpeg", files.anchors).state is ManifestState.TRUSTED
    assert [each.message for each in caplog.records] == ["certificates stay as they were"]


# --- the network ----------------------------------------------------------------------------------


@pytest.fixture
def listener():
    """A server that only counts who comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        came = []

        def accept():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                came.append(client.recv(4096))
                client.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                client.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", came
        server.shutdown(socket.SHUT_RDWR)


def test_a_manifest_that_is_elsewhere_is_not_fetched(files, signer, listener):
    url, came = listener
    info = c2pa.C2paSignerInfo(
        b"es256", files.certificates.read_bytes(), files.key.read_bytes(), None
    )
    builder = c2pa.Builder(
        {"claim_generator_info": [{"name": "other"}]}, c2pa.Context.from_dict(offline())
    )
    builder.set_no_embed()
    builder.set_remote_url(f"{url}/manifest.c2pa")
    out = io.BytesIO()
    builder.sign(c2pa.Signer.from_info(info), "image/jpeg", io.BytesIO(photo()), out)
    assert url.encode() in out.getvalue()
    with pytest.raises(BrokenManifestError, match="must fetch remote manifests"):
        read(out.getvalue(), "image/jpeg")
    signed = signer.sign(photo(), "image/jpeg", STATEMENT, out.getvalue(), "image/jpeg")
    assert read(signed, "image/jpeg", files.anchors).state is ManifestState.TRUSTED
    assert came == []


def test_a_time_stamp_is_asked_for_where_one_is_wanted_and_its_absence_is_a_failure(
    files, listener
):
    url, came = listener
    references = SigningReferences(files.certificates, files.key, time_stamps=f"{url}/stamps")
    signer = C2paSigner(references)
    assert came == []
    with pytest.raises(Problem) as failed:
        signer.sign(photo(), "image/jpeg", STATEMENT)
    assert failed.value.code == "signing_failed"
    assert came[0].startswith(b"POST /stamps")


STAMPS = """
[ stamps ]
serial = {folder}/serial
signer_cert = {folder}/certificate.pem
certs = {folder}/certificate.pem
signer_key = {folder}/key.pem
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
"""


@pytest.fixture
def stamps(tmp_path):
    """An authority for time stamps: OpenSSL behind HTTP."""
    config, query = tmp_path / "config", tmp_path / "query"
    config.write_text(STAMPS.format(folder=tmp_path))
    root, key = ec.generate_private_key(CURVE), ec.generate_private_key(CURVE)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    certificate = issued(key, issuer=(name, root), purpose=ExtendedKeyUsageOID.TIME_STAMPING)
    (tmp_path / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    reply = ("openssl", "ts", "-reply", "-config", config, "-section", "stamps")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            query.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            answer = subprocess.run(
                (*reply, "-queryfile", query), check=True, capture_output=True
            ).stdout
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_time_stamp_says_when_it_was_signed(files, stamps):
    signer = C2paSigner(SigningReferences(files.certificates, files.key, time_stamps=stamps))
    found = read(signer.sign(photo(), "image/jpeg", STATEMENT), "image/jpeg", files.anchors)
    assert found.valid
    assert abs(datetime.fromisoformat(found.signed_at) - datetime.now(UTC)) < timedelta(minutes=10)


# --- hostile files --------------------------------------------------------------------------------


def test_a_file_without_a_manifest_says_nothing(tmp_path):
    assert read(photo(), "image/jpeg") is None
    assert read(clip(tmp_path / "clip.mp4"), "video/mp4") is None
    assert read(b"nothing", "image/bmp") is None


def test_a_file_that_is_damaged_anywhere_is_not_trusted_with_other_pixels(signer, files):
    """Only padding, which C2PA leaves open for the sake of its own signature, may differ."""
    signed = signer.sign(photo(), "image/jpeg", STATEMENT, photo(), "image/jpeg")
    pixels = Image.open(io.BytesIO(signed)).tobytes()
    states = []
    for place in range(2, len(signed), 53):
        for damaged in (signed[:place], signed[:place] + b"\xff\0\xff\0" + signed[place + 4 :]):
            try:
                found = read(damaged, "image/jpeg", files.anchors)
            except BrokenManifestError:
                continue
            states.append(found.state if found else None)
            if states[-1] is ManifestState.TRUSTED:
                assert Image.open(io.BytesIO(damaged)).tobytes() == pixels
    assert set(states) >= {None, ManifestState.INVALID}


def test_texts_of_a_manifest_are_cut_and_steer_no_terminal(files):
    name = "\x1b[31mred\n" + "x" * 5000
    info = c2pa.C2paSignerInfo(
        b"es256", files.certificates.read_bytes(), files.key.read_bytes(), None
    )
    manifest = {
        "claim_generator_info": [{"name": name}],
        "assertions": [
            {"label": "dev.ember.swap", "data": {"request_id": name}},
            {"label": "dev.ember.consent", "data": {"digest": ["no", "text"]}},
            {"label": "c2pa.actions.v2", "data": {"actions": [
                {"action": "c2pa.created", "softwareAgent": {"name": name},
                 "digitalSourceType": SourceType.GENERATED.uri},
                *[{"action": "c2pa.edited"}] * 500,
            ]}},
        ],
    }  # fmt: skip
    builder = c2pa.Builder(manifest, c2pa.Context.from_dict(offline()))
    out = io.BytesIO()
    builder.sign(c2pa.Signer.from_info(info), "image/jpeg", io.BytesIO(photo()), out)
    found = read(out.getvalue(), "image/jpeg", files.anchors)
    assert len(found.request_id) == 300
    assert (found.consent, len(found.actions)) == ("", 50)
    assert found.request_id.startswith(" [31mred xxx")
    assert len(found.software) < 500


# --- cost -----------------------------------------------------------------------------------------


def test_it_is_imported_only_where_it_is_used():
    code = (
        "import sys, function.trust.marking.c2pa_manifest, function.settings;"
        "sys.exit(bool({'c2pa', 'cryptography'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
