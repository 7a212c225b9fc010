"""Route to a service over HTTP, and size limits of its replies, as plain data that needs no HTTP library."""

from __future__ import annotations

from dataclasses import dataclass

AUTO = "auto"
"""Name of the setting that uses the environment's proxies."""

NO_PROXY = "none"


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Maximum size of a reply after decompression in megabytes, and the setting that changes it."""

    megabytes: int = 64
    setting: str = ""

    @property
    def bytes(self) -> int:
        return self.megabytes << 20


MODEL_LIMIT = BodyLimit(64, "llm_body_mb")
RETRIEVER_LIMIT = BodyLimit(256, "retriever_body_mb")
EMBEDDER_LIMIT = BodyLimit(32)  # 64 vectors of 16,384 numbers each; a list of numbers takes many times its text


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Route to a service.

    Attributes:
        proxy: URL of a proxy, `auto` for the environment's (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`;
            never for this machine's own addresses), or `none`.
        ca_bundle: File or folder of certificates to trust in addition to the system's; by default `SSL_CERT_FILE` and
            `REQUESTS_CA_BUNDLE`.
    """

    proxy: str = AUTO
    ca_bundle: str | None = None
