"""Client of `tests/warm.py`, which is also a program: `python -I -S warm_client.py SOCKET ARGUMENTS…`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence


def request(
    address: str,
    arguments: Sequence[str],
    folder: str,
    variables: Mapping[str, str],
    streams: Sequence[int],
    timeout: float | None = None,
) -> int:
    """Run Python on open streams, and return its exit code, which is negative if a signal ended it.

    Args:
        address: Socket of the process that forks.
        arguments: Arguments of Python: `-m MODULE …` or `FILE …`.
        folder: Working directory.
        variables: All environment variables.
        streams: Descriptors of the three standard streams.
        timeout: Seconds after which the process is killed and `TimeoutError` is raised.
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
        client.settimeout(timeout)
        socket.send_fds(client, [b"["], list(streams))
        client.sendall(json.dumps([[*arguments], folder, {**variables}]).encode()[1:])
        client.shutdown(socket.SHUT_WR)
        with client.makefile() as reply:
            process = int(reply.readline())
            try:
                return int(reply.readline())
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise


if __name__ == "__main__":
    code = request(sys.argv[1], sys.argv[2:], os.getcwd(), os.environ, (0, 1, 2))  # noqa: PTH109 (pathlib is slow to import)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
