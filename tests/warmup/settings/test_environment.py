"""What the environment says about certificates and proxies counts."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.warmup.conftest import content_of, file_of, model_of
from tests.warmup.objects.hostile import hostile
from warmup.failures import UnavailableError
from warmup.models.prefetch import prefetch

CONTENT = content_of(300_000)


def fetch(settings, file):
    with prefetch([model_of(file)], settings) as ready:
        return ready.models[0].path.read_bytes()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that no public authority has signed; the path of key and it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with hostile(context) as site:
        yield site


def test_an_unknown_authority_is_refused_at_once(secure, settings):
    with pytest.raises(UnavailableError, match=r"certificate verify failed.*SSL_CERT_FILE"):
        fetch(settings, file_of(CONTENT, secure.put(CONTENT)))
    assert not secure.requests


def test_an_authority_of_the_environment_is_trusted(secure, settings, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert fetch(settings, file_of(CONTENT, secure.put(CONTENT))) == CONTENT


@pytest.fixture
def proxy():
    """A proxy that knows every host, but sends all to one port; what it was asked for."""
    asked = []
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(a, b):
        with suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        for end in (a, b):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(client, port):
        with client:
            line = b""
            while not line.endswith(b"\r\n\r\n"):
                line += client.recv(1)
            asked.append(line.split(b"\r\n")[0].decode())
            with socket.create_connection(("127.0.0.1", port)) as upstream:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=pump, args=(upstream, client), daemon=True)
                back.start()
                pump(client, upstream)
                back.join()

    def accept(port):
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client, port), daemon=True).start()

    def start(port):
        threading.Thread(target=accept, args=(port,), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield asked, start
    listener.close()


def test_a_proxy_of_the_environment_is_used(secure, settings, certificate, monkeypatch, proxy):
    asked, start = proxy
    port = int(secure.url.rpartition(":")[2])
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("HTTPS_PROXY", start(port))
    monkeypatch.setenv("NO_PROXY", "elsewhere.example")
    assert fetch(settings, file_of(CONTENT, secure.put(CONTENT))) == CONTENT
    assert set(asked) == {f"CONNECT localhost:{port} HTTP/1.1"}
    monkeypatch.setenv("NO_PROXY", "localhost")
    asked.clear()
    other = content_of(1000, 4)
    assert fetch(settings, file_of(other, secure.put(other))) == other
    assert not asked
