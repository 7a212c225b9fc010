"""Routes to services: proxies and trusted certificates.

The environment names proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case) unless
a setting does; addresses of this machine are reached directly. Trusted certificates are the system's (or those in
`SSL_CERT_FILE`) and those in the bundle that a setting or `REQUESTS_CA_BUNDLE` names. SOCKS proxies are
refused with a message, and the proxy settings of a desktop are ignored.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment

from pyrag._io.http.errors import shown_url
from pyrag._io.http.options import AUTO, NO_PROXY, Transport
from pyrag._io.specs import expanded
from pyrag.errors import ConfigError

_BUNDLE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_SYSTEM_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """Route to a service.

    Attributes:
        proxy: URL of the proxy with its user and password; empty without a proxy.
        tls: Trusted certificates; True for aiohttp's default.
    """

    proxy: str = ""
    tls: ssl.SSLContext | bool = True

    @property
    def shown_proxy(self) -> str:
        """URL of the proxy without its user and password."""
        scheme, _, rest = self.proxy.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}" if rest else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """User and password of the proxy, which messages must not repeat."""
        parts = urlsplit(self.proxy)
        return tuple(unquote(part) for part in (parts.username, parts.password) if part)


def route_to(base: str, transport: Transport) -> ServiceRoute:
    """Return the proxy and certificates for a service.

    Args:
        base: URL of the service.
        transport: Settings of proxy and certificates.

    Raises:
        ConfigError: The proxy cannot be used, or the certificates cannot be read.
    """
    address = urlsplit(base)
    proxy = _proxy(address, transport)
    is_encrypted = address.scheme == "https" or proxy.startswith("https:")
    return ServiceRoute(proxy, _tls(transport) if is_encrypted else True)


def _proxy(address: SplitResult, transport: Transport) -> str:
    if transport.proxy == NO_PROXY:
        return ""
    is_configured = transport.proxy != AUTO
    url, source = (transport.proxy, "the setting proxy") if is_configured else _of_environment(address)
    return _read_proxy(url if "://" in url else f"http://{url}", source) if url else ""


def _read_proxy(url: str, source: str) -> str:
    """Check the URL of a proxy and return it in normal form."""
    public_url = shown_url(url)
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme.startswith("socks"):
        raise ConfigError(
            f"{source} names the SOCKS proxy {public_url}, which pyrag cannot use: name an http:// proxy, or set "
            f'proxy = "{NO_PROXY}" to do without'
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{source} names the proxy {public_url!r}: write it like http://host:3128, {AUTO} or {NO_PROXY}"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    login = parts.netloc.rpartition("@")[0]
    return f"{parts.scheme}://{login}{'@' if login else ''}{host}{port}"


def _of_environment(address: SplitResult) -> tuple[str, str]:
    """Return the environment's proxy for an address, and the variable that names the proxy; empty without a proxy."""
    host = address.hostname or ""
    proxies = getproxies_environment()
    kind = next((scheme for scheme in (address.scheme, "all") if proxies.get(scheme)), None)
    if kind is None or is_local(host) or _is_bypassed(host, _port(address), proxies.get("no", "")):
        return "", ""
    return proxies[kind], f"{kind.upper()}_PROXY"


def _port(address: SplitResult) -> int:
    return address.port or (443 if address.scheme == "https" else 80)


def is_local(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified


def _is_bypassed(host: str, port: int | None, no_proxy: str) -> bool:
    """Return whether `NO_PROXY` covers a host, by name, parent domain, HOST:PORT, or a network such as 10.0.0.0/8."""
    return any(_matches(entry.strip().lower(), host, port) for entry in no_proxy.split(",") if entry.strip())


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return _is_within(entry, host)
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").removeprefix(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))


def _is_within(network: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _tls(transport: Transport) -> ssl.SSLContext | bool:
    bundle, source = transport.ca_bundle, "the setting ca_bundle"
    if not bundle:
        source = next((name for name in _BUNDLE_VARIABLES if os.environ.get(name)), "")
        bundle = os.environ.get(source, "")
    system = next((name for name in _SYSTEM_VARIABLES if os.environ.get(name)), "")
    if not bundle and not system:
        return True
    if system and not Path(os.environ[system]).exists():
        raise ConfigError(f"{system} names {os.environ[system]}, which is not there: name a file of certificates")
    context = ssl.create_default_context()
    if bundle:
        _trust(context, expanded(bundle), source)
    return context


def _trust(context: ssl.SSLContext, path: Path, source: str) -> None:
    """Add the certificates in a file or folder to a context."""
    try:
        context.load_verify_locations(capath=path) if path.is_dir() else context.load_verify_locations(cafile=path)
    except (OSError, ssl.SSLError) as error:
        reason = "it is not a file of certificates in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(f"cannot read the certificates {path} of {source}: {reason}") from error
