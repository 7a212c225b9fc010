"""Opener of chat models by their specs, without contacting anything.

    openai:MODEL@http://host:port/v1    an OpenAI-compatible server
    openai:MODEL                        the server of OPENAI_BASE_URL, else OpenAI's
    openai:@http://host:port/v1         the first model that the server offers
    vllm:MODEL,adapter=NAME=FOLDER,…    vLLM in this process, see `pyrag.llm.clients.local_spec`
    transformers:MODEL,device=cpu,…     transformers in this process, see `pyrag.llm.clients.transformers`
    scripted:FILE                       replies from a file, see `pyrag.llm.clients.scripted`
    NAME:REST                           a model of an installed package (entry points of the group `pyrag.engines`)

Engines without a language model, such as `embedded`, and `replay:FILE` are handled elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyrag._io import plugins
from pyrag._io.http.options import MODEL_LIMIT, BodyLimit, Transport
from pyrag._io.specs import Spec, parse_spec
from pyrag.errors import ConfigError
from pyrag.llm.limiter import MAX_CALLS
from pyrag.llm.protocol import ChatModel
from pyrag.llm.wrappers import ForeignChat

FORMS = (
    "embedded",
    "embedded:FOLDER",
    "openai:MODEL@http://host:port/v1",
    "vllm:MODEL",
    "transformers:MODEL",
    "scripted:FILE",
    "replay:FILE",
)

_LIKE_ADDRESS = re.compile(r"@(?:localhost\b|[\w.-]+(?::\d+|/v\d))|\A(?:https?:)?//")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Options of calls to a model.

    Attributes:
        timeout: Seconds of one attempt; for a stream, seconds between two pieces.
        max_in_flight: Maximum number of calls in flight to an endpoint.
        limit: Maximum size of one reply of a server.
        transport: Proxy and certificates of a server.
    """

    timeout: float = 60.0
    max_in_flight: int = MAX_CALLS
    limit: BodyLimit = MODEL_LIMIT
    transport: Transport = Transport()


def open_chat_model(
    spec: str, options: ModelOptions = ModelOptions(), *, environ: Mapping[str, str] | None = None
) -> ChatModel:
    """Return the chat model that a spec names.

    Args:
        spec: Spec in one of the module's forms, `SCHEME:REST`.
        options: Time limits, calls in flight and transport.
        environ: Environment variables with the address and key of a server; None for the process's.

    Raises:
        ConfigError: The spec is malformed, or a package is missing.
        DataError: A file or folder that the spec names cannot be used.
    """
    scheme, rest = parts = parse_spec(spec)
    if scheme == "openai":
        return _openai(parts, options, os.environ if environ is None else environ)
    if scheme == "vllm":
        from pyrag.llm.clients.vllm import open_vllm

        return open_vllm(rest, options.timeout)
    if scheme == "transformers":
        from pyrag.llm.clients.transformers import open_transformers

        return open_transformers(rest, options.timeout)
    if scheme == "scripted":
        return _scripted(rest)
    if scheme in plugins.names("engines"):
        what = f"the engine {scheme} of {plugins.package_of_part('engines', scheme)}"
        return ForeignChat(checked_model(plugins.opened("engines", parts), what))
    raise ConfigError(
        f"there is no engine {scheme!r}{_nearest(scheme)}; engines are {', '.join((*FORMS, *plugins.names('engines')))}"
    )


def checked_model(model: Any, what: str) -> ChatModel:
    """Return an object after checking that it is a chat model.

    Args:
        model: The object.
        what: Description of the object, for the message.

    Raises:
        ConfigError: The object lacks a part of the protocol.
    """
    if not isinstance(getattr(model, "name", None), str):
        raise ConfigError(f"{what} has no name: give a {type(model).__name__} the attribute name, a text")
    for method in ("complete(messages, sampling)", "aclose()"):
        if not callable(getattr(model, method.partition("(")[0], None)):
            raise ConfigError(f"{what} has no async {method}: see pyrag.extend.ChatModel")
    checked: ChatModel = model
    return checked


def _openai(spec: Spec, options: ModelOptions, environ: Mapping[str, str]) -> ChatModel:
    from pyrag.llm.clients.headers import with_headers
    from pyrag.llm.clients.openai import DEFAULT_URL, OpenAIChat, key_from_environment

    rest = spec.rest
    model, url = spec.at_url
    # OpenAI itself has no model with an @ in its name; another server behind OPENAI_BASE_URL may.
    elsewhere = environ.get("OPENAI_BASE_URL")
    if not url and (_LIKE_ADDRESS.search(rest) or ("@" in rest and not elsewhere)):
        raise ConfigError("an openai: engine is written openai:MODEL@http://host:port/v1, with http:// or https://")
    url = url or elsewhere or DEFAULT_URL
    if not model and url == DEFAULT_URL:
        raise ConfigError("openai: needs a model: write openai:MODEL or openai:MODEL@http://host:port/v1")
    return OpenAIChat(
        model,
        url,
        headers=with_headers(key_from_environment(environ), environ),
        timeout=options.timeout,
        max_in_flight=options.max_in_flight,
        limit=options.limit,
        transport=options.transport,
    )


def _scripted(path: str) -> ChatModel:
    from pyrag.llm.clients.scripted import ScriptedChat

    if not path:
        raise ConfigError("scripted: needs a file of replies: write scripted:FILE")
    return ScriptedChat.load(path)


def _nearest(scheme: str) -> str:
    import difflib

    known = [parse_spec(form).scheme for form in FORMS] + list(plugins.names("engines"))
    close = difflib.get_close_matches(scheme, known, n=1)
    return f": did you mean {close[0]!r}" if close else ""
