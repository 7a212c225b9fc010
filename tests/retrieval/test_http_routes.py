"""Proxies and certificates: a proxy and a TLS server on loopback, under names that no network knows."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyrag import PyRAG
from pyrag._io.http.client import HttpService
from pyrag._io.http.options import Transport
from pyrag._io.http.routes import is_local, route_to
from pyrag.errors import ConfigError, PermanentServiceError, RetryableServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.protocol import Message
from pyrag.retrieval.http import HttpRetriever
from pyrag.settings import Settings, load_settings

from .conftest import Server
from .test_http_client import decode

MODEL = "http://model.example/v1"
ASKED = (Message("user", "Say it."),)
REPLY = {"choices": [{"message": {"content": "hello"}}]}
FOUND = {"result": [[{"id": "1", "text": "x"}]]}
VARIABLES = [
    variant
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    for variant in (name, name.lower())
]
LOGIN = "Basic Ym9iOmh1bnRlcjI="  # bob:hunter2


@dataclass
class Proxy:
    """Leads every address to `target`; `asked` holds the first line of each request, `logins` what came with it."""

    url: str = ""
    target: int = 0
    refuse: bytes = b""
    asked: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *headers = head.rstrip("\r\n").split("\r\n")
        named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in headers)}
        self.asked.append(first)
        self.logins.append(named.get("proxy-authorization"))
        if self.refuse:
            writer.write(self.refuse)
            writer.close()
            return
        onward, back = await asyncio.open_connection("127.0.0.1", self.target)
        if first.startswith("CONNECT "):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            method, url, version = first.split()
            path = "/" + url.partition("://")[2].partition("/")[2]
            back.write("\r\n".join([f"{method} {path} {version}", *headers, "", ""]).encode())
        await asyncio.gather(_pipe(reader, back), _pipe(onward, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    proxy = Proxy(target=int(server.url.rpartition(":")[2]))
    talks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.create_task(proxy.talk(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listening:
        proxy.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield proxy
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and the certificate for `model.example` and 127.0.0.1 that it signed itself."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(file), "-out", str(file), "-days", "2", "-subj", "/CN=pyrag test"),
            *("-addext", "subjectAltName=DNS:model.example,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    text = file.with_name("certificate.pem")
    subprocess.run([openssl, "x509", "-in", str(file), "-out", str(text)], check=True, capture_output=True)
    return file


@pytest.fixture
async def tls_port(certificate: Path) -> AsyncIterator[int]:
    """A model and a retriever behind TLS."""

    async def serve(request: web.Request) -> web.Response:
        return web.json_response(FOUND if request.path == "/retrieve" else REPLY)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def posted(url: str, **transport: Any) -> Any:
    client = HttpService(url, name="model server", timeout=5.0, retries=0, transport=Transport(**transport))
    try:
        return await client.post_json("/chat", {}, decode)
    finally:
        await client.aclose()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
async def test_plain_requests_pass_the_proxy(proxy: Proxy, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, proxy.url)
    assert (await posted(MODEL))["path"] == "/v1/chat"
    assert proxy.asked == ["POST http://model.example/v1/chat HTTP/1.1"]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_encrypted_requests_pass_a_tunnel(
    proxy: Proxy, certificate: Path, tls_port: int, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, proxy.url.removeprefix("http://"))  # without a scheme, as curl takes it
    proxy.target = tls_port
    bundle = str(certificate.with_name("certificate.pem"))
    chat = OpenAIChat("tiny", "https://model.example/v1", transport=Transport(ca_bundle=bundle))
    assert (await chat.complete(ASKED)).text == "hello"
    await chat.aclose()
    retriever = HttpRetriever("https://model.example", transport=Transport(ca_bundle=bundle))
    assert (await retriever.retrieve("who?", 1))[0].text == "x"
    await retriever.aclose()
    assert proxy.asked == ["CONNECT model.example:443 HTTP/1.1"] * 2


@pytest.mark.parametrize(
    "no_proxy",
    ["*", "model.example", ".example", "example", "*.example", "other, model.example:80", "MODEL.EXAMPLE"],
)
def test_named_hosts_are_reached_directly(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    assert route_to(MODEL, Transport()).proxy == "http://proxy:3128"
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert route_to(MODEL, Transport()).proxy == ""


@pytest.mark.parametrize("no_proxy", ["", "ample", "del.example", "model.example:81", "10.0.0.0/8", "a/b"])
def test_other_hosts_still_pass_the_proxy(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert route_to(MODEL, Transport()).proxy == "http://proxy:3128"


def test_networks_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,fd00::/8")
    assert route_to("http://10.1.2.3:8000/v1", Transport()).proxy == ""
    assert route_to("http://[fd00::1]:8000/v1", Transport()).proxy == ""
    assert route_to("http://11.1.2.3:8000/v1", Transport()).proxy == "http://proxy:3128"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "[::1]", "0.0.0.0", "app.localhost"])
def test_this_machine_is_never_proxied_unless_told(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://proxy:3128")
    assert is_local(host.strip("[]"))
    assert route_to(f"http://{host}:8000/v1", Transport()).proxy == ""
    assert route_to(f"http://{host}:8000/v1", Transport(proxy="http://other:1")).proxy == "http://other:1"
    assert route_to("https://model.example", Transport(proxy="none")).proxy == ""


async def test_the_setting_reaches_model_and_retriever(server: Server, proxy: Proxy) -> None:
    async with PyRAG("openai:tiny@http://m.example/v1", retriever="http://r.example", proxy=proxy.url) as rag:
        await rag.engines.retriever.aclose()
        await rag.aask("Who is Jed Hoyer?")
        with contextlib.suppress(Exception):
            await rag.engines.retriever.retrieve("who?", 1)
    assert any(line.startswith("POST http://m.example/v1/chat/completions") for line in proxy.asked)
    assert any(line.startswith("POST http://r.example/retrieve") for line in proxy.asked)


async def test_the_login_of_a_proxy_is_sent_and_never_shown(proxy: Proxy) -> None:
    named = proxy.url.replace("http://", "http://bob:hunter2@")
    await posted(MODEL, proxy=named)
    assert proxy.logins == [LOGIN]
    proxy.refuse = b"HTTP/1.1 407 Login\r\nContent-Length: 18\r\n\r\nno bob, no hunter2"
    with pytest.raises(PermanentServiceError, match="HTTP 407") as caught:
        await posted(MODEL, proxy=named)
    with pytest.raises(PermanentServiceError, match=r"the proxy http://127.0.0.1.* replied HTTP 407") as tunnelled:
        await posted("https://model.example/v1", proxy=named)
    for error in (caught, tunnelled):
        assert "write the proxy's user and password" in str(error.value)
        assert not any(secret in str(error.value) for secret in ("bob", "hunter2"))
    assert "hunter2" not in repr(Settings(proxy=named))


async def test_a_dead_proxy_is_named(dead_url: str) -> None:
    said = f"could not be reached, as the proxy {dead_url} refused the connection: check the proxy"
    with pytest.raises(RetryableServiceError, match=said):
        await posted(MODEL, proxy=dead_url)


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("socks5://bob:hunter2@h:1080", "names the SOCKS proxy h:1080, which pyrag cannot use"),
        ("ftp://bob:hunter2@h", "names the proxy 'h': write it like http://host:3128, auto or none"),
        ("http://bob:hunter2@h:port", "names the proxy 'h:port': write it like"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused(proxy: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=f"the setting proxy {said}") as caught:
        route_to(MODEL, Transport(proxy=proxy))
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigError, match=f"ALL_PROXY {said}"):
        route_to(MODEL, Transport())
    assert route_to("http://127.0.0.1:1", Transport()).proxy == ""


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_an_own_authority_is_trusted(
    certificate: Path, tls_port: int, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    url = f"https://127.0.0.1:{tls_port}"
    with pytest.raises(PermanentServiceError, match=r"cannot be trusted \(self.signed certificate\): .*ca_bundle"):
        await posted(url)
    monkeypatch.setenv(variable, str(certificate.with_name("certificate.pem")))
    assert await posted(url) == REPLY


async def test_a_certificate_of_another_host_is_not_trusted(certificate: Path, tls_port: int) -> None:
    bundle = str(certificate.with_name("certificate.pem"))
    with pytest.raises(PermanentServiceError, match=r"cannot be trusted \(Hostname mismatch"):
        await posted(f"https://localhost:{tls_port}", ca_bundle=bundle)


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match=r"bad.pem of the setting ca_bundle: it is not a file of certificates"):
        route_to("https://model.example", Transport(ca_bundle=str(tmp_path / "bad.pem")))
    with pytest.raises(ConfigError, match=r"none.pem of the setting ca_bundle: No such file"):
        route_to("https://model.example", Transport(ca_bundle=str(tmp_path / "none.pem")))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match=r"SSL_CERT_FILE names .*, which is not there"):
        route_to("https://model.example", Transport())
    assert route_to("http://model.example", Transport()).tls is True


def test_a_bundle_of_a_settings_file_counts_from_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text('ca_bundle = "ca.pem"\nproxy = "none"')
    settings = load_settings(config=file, environ={})
    assert (settings.ca_bundle, settings.proxy) == (str(tmp_path / "ca.pem"), "none")


async def test_http_where_https_was_meant_is_told(server: Server) -> None:
    with pytest.raises(PermanentServiceError, match="does not speak TLS"):
        await posted(server.url.replace("http://", "https://"))
