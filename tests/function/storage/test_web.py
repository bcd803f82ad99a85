"""`https://` and `http://` against real servers, redirects, and names that change their meaning."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from warmup.objects.errors import ChangedError

from .conftest import refused

HERE = (ip_network("127.0.0.2/32"),)
DATA = bytes(range(256)) * 40
LIMIT = 100_000


class Site:
    """A server on 127.0.0.2, which counts as allowed, and what it was asked."""

    def __init__(self):
        self.asked = []
        self.app = web.Application(client_max_size=LIMIT)
        self.app.router.add_route("*", "/{name}", self._answer)
        self.answers = {}

    async def _answer(self, request):
        self.asked.append(request)
        return await self.answers[request.match_info["name"]](request)

    def on(self, name):
        def keep(handler):
            self.answers[name] = handler
            return handler

        return keep

    def url(self, name, host="127.0.0.2"):
        return f"http://{host}:{self.port}/{name}"


@pytest.fixture
async def site():
    site = Site()
    runner = web.AppRunner(site.app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.2", 0).start()
    site.port = runner.addresses[0][1]

    @site.on("photo")
    async def _(request):
        return web.Response(body=DATA, content_type="image/jpeg")

    yield site
    await runner.cleanup()


@pytest.fixture
async def inside():
    """A listener on 127.0.0.1, which is not allowed; every connection to it counts."""
    connections = []

    async def connected(_, writer):
        connections.append(writer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], connections
    server.close()


@pytest.fixture
def here(storage):
    return storage(networks=HERE, timeout_s=5)


async def test_a_file_comes_whole_with_its_media_type(site, here):
    found = await here.read(site.url("photo"), LIMIT)
    assert (found.data, found.facts.media_type) == (DATA, "image/jpeg")


async def test_nothing_of_ours_is_sent_along(site, here, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    @site.on("again")
    async def _(request):
        answer = web.Response(status=302, headers={"Location": "/photo"})
        answer.set_cookie("spy", "1")
        return answer

    await here.read(site.url("again"), LIMIT)
    for request in site.asked:
        assert not set(request.headers) & {"Authorization", "Cookie", "Referer"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "１２７.0.0.1",
        "127。0。0。1",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_spelling_of_a_private_address_is_connected_to(here, inside, scheme, host):
    port, connections = inside
    async with refused("object_forbidden", "bad_value"):
        await here.read(f"{scheme}://{host}:{port}/photo", LIMIT)
    assert not connections


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "2130706433"]
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_a_private_address_is_not_followed(here, site, inside, status, host):
    port, connections = inside

    @site.on("away")
    async def _(request):
        return web.Response(status=status, headers={"Location": f"http://{host}:{port}/x"})

    async with refused("object_forbidden", "bad_value"):
        await here.read(site.url("away"), LIMIT)
    assert not connections


@pytest.mark.parametrize("place", ["file:///etc/passwd", "gopher://127.0.0.1/", "data:,x"])
async def test_a_redirect_to_another_scheme_is_not_followed(here, site, place):
    @site.on("away")
    async def _(request):
        return web.Response(status=302, headers={"Location": place})

    async with refused("object_forbidden"):
        await here.read(site.url("away"), LIMIT)


async def test_a_circle_of_redirects_ends(here, site):
    @site.on("round")
    async def _(request):
        return web.Response(status=302, headers={"Location": "/round"})

    async with refused("object_not_found"):
        await here.read(site.url("round"), LIMIT)
    assert len(site.asked) == 6


class Names(AbstractResolver):
    """A resolver whose names mean another address each time they are asked for."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = 0

    async def resolve(self, host, port=0, family=socket.AF_INET):
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            {"hostname": host, "host": each, "port": port, "family": socket.AF_INET,
             "proto": 0, "flags": socket.AI_NUMERICHOST}
            for each in answer
        ]  # fmt: skip

    async def close(self):
        pass


async def test_a_name_that_turns_private_after_it_was_checked_is_not_followed(storage, site):
    connections = []
    trap = await asyncio.start_server(lambda *_: connections.append(1), "127.0.0.1", site.port)
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    here = storage(networks=HERE, resolver=names, timeout_s=5)

    @site.on("close")
    async def _(request):
        answer = web.Response(body=DATA)
        answer.force_close()
        return answer

    async with trap:
        assert (await here.read(site.url("close", "rebinding.test"), LIMIT)).data == DATA
        async with refused("object_forbidden"):
            await here.read(site.url("close", "rebinding.test"), LIMIT)
    assert (names.asked, len(site.asked), connections) == (2, 1, [])


async def test_each_resolution_is_what_is_connected_to(storage, site):
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    here = storage(networks=HERE, resolver=names, timeout_s=5)
    await here.read(site.url("photo", "rebinding.test"), LIMIT)
    assert names.asked == 1  # there is no second question whose answer could be another


async def test_of_several_addresses_only_the_allowed_are_connected_to(storage, site, inside):
    _, connections = inside
    here = storage(networks=HERE, resolver=Names(["127.0.0.1", "127.0.0.2"]), timeout_s=5)
    assert (await here.read(site.url("photo", "mixed.test"), LIMIT)).data == DATA
    assert not connections


async def test_http_leads_only_into_allowed_networks(storage):
    here = storage(resolver=Names(["93.184.216.34"]), timeout_s=5)
    async with refused("object_forbidden") as found:
        await here.read("http://public.test/photo", LIMIT)
    assert "use https://" in found.problem.detail


@pytest.mark.parametrize("uri", ["https://ann:secret@host/x", "https://ann@host/x"])
async def test_credentials_in_a_uri_are_refused(here, uri):
    async with refused("object_forbidden"):
        await here.read(uri, LIMIT)


@pytest.mark.parametrize(
    "uri",
    ["https://", "https:///x", "https://h:99999/x", "https://[::1/x", "http:x", "https://h:0"],
)
async def test_what_is_malformed_is_a_bad_value(here, uri):
    async with refused("bad_value"):
        await here.read(uri, LIMIT)


@pytest.mark.parametrize(
    ("number", "code"),
    [(socket.EAI_NONAME, "object_not_found"), (socket.EAI_AGAIN, "storage_unavailable")],
)
async def test_a_name_that_does_not_exist_is_told_from_one_that_is_not_known_now(
    storage, number, code
):
    class Failing(Names):
        async def resolve(self, *_, **__):
            raise socket.gaierror(number, "no")

    async with refused(code):
        await storage(resolver=Failing(), timeout_s=1).read("https://no.test/x", LIMIT)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "object_not_found"),
        (404, "object_not_found"),
        (410, "object_not_found"),
        (401, "object_forbidden"),
        (403, "object_forbidden"),
        (451, "object_forbidden"),
    ],
)
async def test_statuses_become_problems_without_another_try(here, site, status, code):
    @site.on("bad")
    async def _(request):
        return web.Response(status=status)

    async with refused(code):
        await here.read(site.url("bad"), LIMIT)
    assert len(site.asked) == 1


async def test_what_fails_in_passing_is_tried_again(here, site):
    @site.on("busy")
    async def _(request):
        return web.Response(body=DATA, status=503 if len(site.asked) < 3 else 200)

    assert (await here.read(site.url("busy"), LIMIT)).data == DATA
    assert len(site.asked) == 3


async def test_what_a_failed_try_took_room_for_is_not_taken_again(here, site):
    @site.on("short")
    async def _(request):
        if len(site.asked) < 3:
            answer = web.StreamResponse(headers={"Content-Length": str(len(DATA))})
            await answer.prepare(request)
            await answer.write(DATA[:1000])
            request.transport.abort()
            return answer
        return web.Response(body=DATA)

    taken = []
    assert (await here.read(site.url("short"), LIMIT, taken.append)).data == DATA
    assert sum(taken) == len(DATA)


async def test_a_server_that_stays_down_is_unavailable_with_retry_after(storage, free_port):
    here = storage(networks=HERE, timeout_s=2)
    async with refused("storage_unavailable") as found:
        await here.read(f"http://127.0.0.2:{free_port}/photo", LIMIT)
    assert int(found.problem.headers["Retry-After"]) >= 1


async def test_an_announced_length_beyond_the_limit_is_refused_before_a_byte(here, site):
    @site.on("huge")
    async def _(request):
        answer = web.StreamResponse(headers={"Content-Length": str(10**15)})
        await answer.prepare(request)
        await asyncio.sleep(60)
        return answer

    taken = []
    async with refused("object_too_large") as found:
        await here.read(site.url("huge"), LIMIT, taken.append)
    assert found.problem.extra == {"limit": LIMIT, "value": 10**15}
    assert not taken


async def test_a_body_without_a_length_is_cut_at_the_limit(here, site):
    @site.on("endless")
    async def _(request):
        answer = web.StreamResponse()
        await answer.prepare(request)
        while not request.transport.is_closing():
            await answer.write(bytes(10_000))
            await asyncio.sleep(0)
        return answer

    taken = []
    async with refused("object_too_large"):
        await here.read(site.url("endless"), LIMIT, taken.append)
    assert 0 < sum(taken) <= LIMIT


async def test_a_slow_body_ends_with_the_time(storage, site):
    here = storage(networks=HERE, timeout_s=1)

    @site.on("slow")
    async def _(request):
        answer = web.StreamResponse(headers={"Content-Length": "1000"})
        await answer.prepare(request)
        while True:
            await answer.write(b".")
            await asyncio.sleep(0.02)

    async with refused("storage_unavailable") as found:
        await here.read(site.url("slow"), LIMIT)
    assert found.problem.extra["setting"] == "EMBER_URI_TIMEOUT_S"


async def test_what_comes_compressed_is_refused_unread(here, site):
    @site.on("bomb")
    async def _(request):
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=bytes(50), headers={"Content-Encoding": "gzip"})

    async with refused("unsupported_media_type"):
        await here.read(site.url("bomb"), LIMIT)


async def test_a_put_writes_what_a_signed_url_takes(here, site):
    bodies = []

    @site.on("signed")
    async def _(request):
        bodies.append(await request.read())
        return web.Response(status=201)

    await here.write(site.url("signed"), DATA, media_type="image/webp")
    request = site.asked[-1]
    assert (request.method, request.headers["Content-Type"]) == ("PUT", "image/webp")
    assert bodies == [DATA]
    assert "If-None-Match" not in request.headers


async def test_a_put_that_must_be_the_first_says_so(here, site):
    @site.on("once")
    async def _(request):
        assert request.headers["If-None-Match"] == "*"
        return web.Response(status=412)

    with pytest.raises(ChangedError):
        await here.write(site.url("once"), DATA, media_type="image/png", if_generation_match=0)


async def test_a_put_is_not_sent_elsewhere(here, site):
    @site.on("moved")
    async def _(request):
        return web.Response(status=307, headers={"Location": "/photo"})

    async with refused("object_not_found"):
        await here.write(site.url("moved"), DATA, media_type="image/png")
    assert len(site.asked) == 1


def certificate(folder, host):
    """Paths of a certificate that signs itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{host}.crt", folder / f"{host}.key"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


@asynccontextmanager
async def secure(tmp_path, host):
    """A server with a certificate that nobody has signed, on 127.0.0.2."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate(tmp_path, host))
    app = web.Application()
    app.router.add_get("/photo", _answered)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.2", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _answered(request):
    return web.Response(body=DATA)


async def test_a_certificate_counts_when_an_authority_of_the_environment_has_signed_it(
    storage, tmp_path, monkeypatch
):
    async with secure(tmp_path, "photos.test") as port:
        resolver = Names(["127.0.0.2"])
        uri = f"https://photos.test:{port}/photo"
        async with refused("object_forbidden"):
            await storage(networks=HERE, resolver=resolver, timeout_s=5).read(uri, LIMIT)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "photos.test.crt"))
        found = await storage(networks=HERE, resolver=resolver, timeout_s=5).read(uri, LIMIT)
        assert found.data == DATA


SIGNED = [
    "/a%2Fb%27c%28d%29%3Af.jpg?Credential=AK%2F2026%2Fs3&Signature=a%2Bb%2Fc%3D%7E%40",
    "/plain/../dots/./kept//twice?x=1+2&y='()*!&empty=&=",
    "/lower%c3%a4UPPER%C3%A4?q=%zz%",
    '/a|b^c`d{e}[f]\\g?h="<>',
    "?only=a%2Fb",
]


class Raw:
    """A server that notes the first line of each request as it came."""

    def __init__(self):
        self.asked, self.location = [], ""

    async def answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        self.asked.append((method, target))
        status, more = "200 OK", ""
        if target == "/away":
            status, more = "302 Found", f"Location: {self.location}\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def raw():
    raw = Raw()
    server = await asyncio.start_server(raw.answer, "127.0.0.2", 0)
    raw.port = server.sockets[0].getsockname()[1]
    raw.at = f"http://127.0.0.2:{raw.port}"
    yield raw
    server.close()


@pytest.mark.parametrize("signed", SIGNED)
async def test_a_signed_url_is_asked_for_byte_for_byte(here, raw, signed):
    uri, asked = raw.at + signed, signed if signed.startswith("/") else f"/{signed}"
    await here.read(uri, LIMIT)
    await here.stat(uri)
    await here.write(uri, b"x", media_type="image/png")
    await here.delete(uri)
    await here.post(uri, b"{}", {})
    assert raw.asked == [(each, asked) for each in ("GET", "HEAD", "PUT", "DELETE", "POST")]


@pytest.mark.parametrize("signed", SIGNED[:4])
@pytest.mark.parametrize("absolute", [True, False])
async def test_so_is_where_a_redirect_leads(here, raw, signed, absolute):
    if "/../" in signed and not absolute:
        return  # steps of a reference are taken (RFC 3986, 5.2.4)
    raw.location = (raw.at if absolute else "") + signed
    await here.read(f"{raw.at}/away", LIMIT)
    assert raw.asked == [("GET", "/away"), ("GET", signed)]


async def test_what_no_request_can_have_in_it_is_encoded_and_nothing_else(here, raw):
    await here.read(f"{raw.at}/ä b%2F?c=ü%2F d#not-sent", LIMIT)
    assert raw.asked == [("GET", "/%C3%A4%20b%2F?c=%C3%BC%2F%20d")]
