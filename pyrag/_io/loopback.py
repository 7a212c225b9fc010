"""Ports and servers on this machine."""

from __future__ import annotations

import contextlib
import socket
import urllib.request
from urllib.error import HTTPError

_TIMEOUT = 5.0  # seconds for a reply


def is_free(port: int) -> bool:
    """Return whether a server can listen on a port of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def is_ready(url: str) -> bool:
    """Return whether a server of this machine answers a GET request with status 200. Proxies are not used."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT) as reply:
            return bool(reply.status == 200)
    except HTTPError as error:
        error.close()
    except OSError:
        pass
    return False
