"""Chat model behind `POST {base}/chat/completions`: vLLM, Ollama, llama.cpp, hosted services.

The wire format is small, so it is implemented here and tested against the official client. `pyrag._io.http.client`
provides connections, time limits, retries and the classes of faults. A schema or pattern is sent until the server
refuses or ignores it (`pyrag.llm.schema`), and the same holds for the request to stream a reply. Any other field, role
or limit that a server refuses is omitted, renamed or reduced, and this rule is remembered
(`pyrag.llm.clients.request_rules`). Tools are not supported.
"""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyrag._io.http.options import MODEL_LIMIT, BodyLimit, Transport
from pyrag._io.specs import expanded
from pyrag.errors import ConfigError, ContextLengthError, PermanentServiceError, ServiceError
from pyrag.llm.clients.headers import private_text
from pyrag.llm.clients.refusals import read_refusal
from pyrag.llm.clients.request_rules import MAX_REFUSALS, NO_RULES, RequestRules
from pyrag.llm.context import about_tokens, too_long
from pyrag.llm.limiter import MAX_CALLS, endpoint_gate
from pyrag.llm.protocol import Message, ModelInfo, Reply, Sampling
from pyrag.llm.schema import Constraint, Support, constraint_of

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLES = ("PYRAG_API_KEY", "OPENAI_API_KEY")

KEY_FILE_VARIABLE = "PYRAG_API_KEY_FILE"

DEFAULT_SAMPLING = Sampling()
DEFAULT_TRANSPORT = Transport()
_SERVICE = "model server"
_NO_STREAM = (400, 404, 405, 415, 422, 501)  # statuses with which servers refuse to stream
_CURE = "start it, or name another with --llm openai:MODEL@http://host:port/v1"
_CURES: Mapping[int, str] = {
    400: "correct what it complains about (a prompt that is too long: lower --topk, or serve a larger window)",
    413: "lower --topk, or serve a larger window",
    401: f"set {KEY_VARIABLES[1]} or {KEY_VARIABLES[0]} to a valid key",
    403: f"use a key that may use this model ({KEY_VARIABLES[1]} or {KEY_VARIABLES[0]})",
    404: "check the model's name (`pyrag doctor` lists those on offer) and that the URL ends in /v1",
}


def key_from_environment(environ: Mapping[str, str] | None = None) -> str | None:
    """Return the API key from the environment, or from the file that `PYRAG_API_KEY_FILE` names; None without a key.

    Raises:
        ConfigError: The file cannot be read, or others can read it.
    """
    environ = os.environ if environ is None else environ
    key = next((environ[name].strip() for name in KEY_VARIABLES if environ.get(name, "").strip()), None)
    file = environ.get(KEY_FILE_VARIABLE, "").strip()
    return key or (_key_in(expanded(file)) if file else None)


def _key_in(file: Path) -> str:
    text = private_text(file, KEY_FILE_VARIABLE)
    if not text.strip():
        raise ConfigError(f"the key file {file} of {KEY_FILE_VARIABLE} is empty: write the key into it")
    return text.strip()


class OpenAIChat:
    """Client for one model of an OpenAI-compatible server. An empty `model` means the first one that the server offers.

    The key is never shown. All clients of a model at a base URL share a limit of calls in flight (`pyrag.llm.limiter`).

    Args:
        model: Name of the model.
        base_url: Base URL of the server.
        api_key: Key of the server, if it needs one.
        headers: Headers of every request, in place of `api_key`.
        timeout: Seconds of one attempt.
        total: Seconds of a call with its retries; None for no limit.
        retries: Maximum number of retries of transient faults.
        max_in_flight: Maximum number of calls in flight.
        limit: Maximum size of one reply.
        transport: Proxy and certificates.
    """

    def __init__(
        self,
        model: str,
        base_url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        total: float | None = None,
        retries: int = 2,
        max_in_flight: int = MAX_CALLS,
        limit: BodyLimit = MODEL_LIMIT,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        from pyrag._io.http.client import HttpService

        self._model = model
        self.streaming = True  # until the server refuses
        self._support: defaultdict[str, Support] = defaultdict(Support)
        self._rules = NO_RULES
        self._estimates = False  # until the server miscounts tokens
        self._asked = False
        self._context_tokens: int | None = None
        self._service = HttpService(
            base_url,
            name=_SERVICE,
            timeout=timeout,
            total=total,
            retries=retries,
            headers=headers or ({"Authorization": f"Bearer {api_key}"} if api_key else None),
            cure=_CURE,
            cures=_CURES,
            patience="--call-timeout or a longer --deadline",
            limit=limit,
            transport=transport,
        )
        self._service.gate = endpoint_gate(self._service.url, model, max_in_flight)
        # OpenAI's own newer models refuse `max_tokens`; most other servers know no other name.
        self._hosted = urlsplit(self._service.url).hostname == urlsplit(DEFAULT_URL).hostname
        self._limit_name = "max_completion_tokens" if self._hosted else "max_tokens"

    @property
    def name(self) -> str:
        """Spec of the model, without the key."""
        return f"openai:{self._model}@{self._service.url}"

    def __repr__(self) -> str:
        return f"<OpenAIChat {self.name}>"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return one reply.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
        """
        await self.resolve()
        body = self._body(messages, sampling)
        constraint = constraint_of(sampling)
        if constraint is None or not self._may_ask_for(constraint):
            return await self._post(body)
        return await self._post_constrained(body, constraint, self._support[constraint.what])

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        """Return one reply and show it while it is written, or in one piece if this is not possible.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
            on_text: Called with each piece of the text.
        """
        if not self.streaming or constraint_of(sampling) is not None:
            reply = await self.complete(messages, sampling)
            on_text(reply.text)
            return reply
        await self.resolve()
        body = self._body(messages, sampling)
        shown = _Shown(on_text)
        try:
            reply = await self._post_stream(body, shown)
        except PermanentServiceError as error:
            if error.status not in _NO_STREAM:
                raise
            reply = await self._post(body)  # wordings differ, so it is tried: a refusal for another reason comes again
            self.streaming = False
        if not shown.pieces:
            on_text(reply.text)
        return reply

    async def _post_stream(self, body: dict[str, Any], shown: _Shown) -> Reply:
        streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
        return await self._send(streamed, lambda sent: self._post_events(sent, shown))

    async def _post_events(self, sent: dict[str, Any], shown: _Shown) -> Reply:
        from pyrag.llm.clients.openai_wire import read_stream

        redactor = self._service.redactor

        async def read(events: AsyncIterator[bytes]) -> Reply:
            show = redactor.pieces(shown.attempt())
            reply = await read_stream(events, show)
            show.end()
            text = redactor.content(reply.text)
            return reply if text is reply.text else replace(reply, text=text)

        path = "/chat/completions"
        return await self._service.post_events(path, sent, read, _reply_decoder())

    def _may_ask_for(self, constraint: Constraint) -> bool:
        # OpenAI's own server supports schemas and no other field.
        return self._support[constraint.what].wanted and not (self._hosted and constraint.named)

    async def _post_constrained(self, body: dict[str, Any], constraint: Constraint, support: Support) -> Reply:
        server, proven = f"{_SERVICE} {self._service.url}", support.seen
        try:
            reply = await self._post({**body, constraint.field: constraint.value})
        except ContextLengthError:
            raise
        except PermanentServiceError as error:
            if not constraint.is_reason(error, proven=proven):
                raise
            # Wordings differ, so it is tried: a refusal for another reason comes again.
            reply = await self._post(body)
            note = support.refused(constraint, server)
        else:
            note = support.judge(reply, constraint, server)
        return replace(reply, note="; ".join(filter(None, (note, reply.note)))) if note else reply

    async def _post(self, body: dict[str, Any]) -> Reply:
        async def post(sent: dict[str, Any]) -> Reply:
            if sent.get("stream"):  # some servers only reply in streams
                return await self._post_events(sent, _Shown(_unseen))
            return await self._service.post_json("/chat/completions", sent, _reply_decoder())

        return await self._send(body, post)

    async def _send(self, body: dict[str, Any], post: Callable[[dict[str, Any]], Awaitable[Reply]]) -> Reply:
        """Send a request in the form that the server accepts.

        Each refusal that names its cause adds a rule. The rules are remembered when the server replies.
        """
        rules = self._rules
        for _ in range(MAX_REFUSALS):
            sent = rules.apply(body)
            try:
                reply = await post(sent)
            except PermanentServiceError as error:
                learnt = self._after(error, rules, body, sent)
                if learnt is None:
                    raise too_long(error) or error from error.__cause__
                rules = learnt
            else:
                return self._remembered(rules, body, reply)
        return await post(rules.apply(body))

    def _after(
        self, error: PermanentServiceError, rules: RequestRules, body: dict[str, Any], sent: dict[str, Any]
    ) -> RequestRules | None:
        """Return the rules to try after a refusal: rules that another call has learnt, or else this refusal's."""
        known = replace(self._rules.joined(rules), this_reply=rules.this_reply)
        if known.apply(body) != sent:
            return known
        refusal = read_refusal(error)
        return known.after(refusal, body, sent) if refusal else None

    def _remembered(self, rules: RequestRules, body: dict[str, Any], reply: Reply) -> Reply:
        """Remember rules that a reply has confirmed, and return the reply with a note on the server's peculiarities."""
        if "stop" in rules.dropped:
            reply = _stopped(reply, body.get("stop", ()))
        lost = []
        if rules is not self._rules:
            lost = rules.lost(self._rules, body)
            self._rules = self._rules.joined(rules)
        self._rules = self._rules.after_success(body, reply.prompt_tokens)
        refusal = f"refuses {', '.join(lost)}: requests are sent without from now on" if lost else ""
        if not reply.note:
            return self._noted(reply, refusal)
        uncounted = f"{reply.note}: they are estimated" if not self._estimates else ""
        self._estimates = True
        return self._noted(_estimated(replace(reply, note=""), body), uncounted, refusal)

    def _noted(self, reply: Reply, *parts: str) -> Reply:
        notes = [f"{_SERVICE} {self._service.url} {note}" for note in parts if note]
        return replace(reply, note="; ".join(notes)) if notes else reply

    async def resolve(self) -> None:
        """Look up the name of the model if it is empty."""
        if not self._model:
            self._model = await self._first_model()

    async def models(self) -> list[str]:
        """Return the ids of the models that the server offers."""
        return [model.id for model in await self.offered()]

    async def offered(self) -> list[ModelInfo]:
        """Return the models that the server offers, with the details it reports."""
        return await self._service.get_json("/models", _models_decoder())

    async def context_tokens(self) -> int | None:
        """Return the context window of the model (or of its base model), if the server reports it.

        The server is asked only once, even if it fails.
        """
        if not self._asked:
            try:
                known = {model.id: model for model in await self.offered()}
            except ServiceError:
                known = {}
            own = known.get(self._model)
            base = known.get(own.parent or "") if own else None
            self._context_tokens = next(
                (info.context_tokens for info in (own, base) if info and info.context_tokens), None
            )
            self._asked = True
        return self._context_tokens

    async def aclose(self) -> None:
        """Close all connections."""
        await self._service.aclose()

    def _body(self, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": sampling.temperature,
            self._limit_name: sampling.max_tokens,
        }
        if messages and messages[-1].role == "assistant" and not self._hosted:
            # Otherwise vLLM and SGLang begin a new message; servers without such an option ignore it.
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        return body | dict(sampling.extra or {})

    async def _first_model(self) -> str:
        offered = await self.models()
        if not offered:
            service = f"{_SERVICE} {self._service.url}"
            raise PermanentServiceError(f"{service} offers no model: load one, or name it in --llm", service=service)
        return offered[0]


class _Shown:
    """Filter that shows the pieces of one attempt. Once it has shown a piece, it shows nothing of later attempts."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.pieces = 0
        self._on_text = on_text

    def attempt(self) -> Callable[[str], None]:
        return self._ignore if self.pieces else self._show

    def _show(self, text: str) -> None:
        self.pieces += 1
        self._on_text(text)

    def _ignore(self, text: str) -> None:
        pass


def _stopped(reply: Reply, stops: Sequence[str]) -> Reply:
    """Return a reply cut at the first stop text after the model's thinking, in case the server did not cut it."""
    begin = max(reply.text.rfind("</think>"), 0)
    places = [place for stop in stops if (place := reply.text.find(stop, begin)) >= 0]
    return replace(reply, text=reply.text[: min(places)], finish_reason="stop") if places else reply


def _estimated(reply: Reply, body: Mapping[str, Any]) -> Reply:
    """Return a reply with estimates for tokens that the server did not count, so that limits and costs still work."""
    asked = sum(about_tokens(str(message["content"])) for message in body["messages"])
    return replace(
        reply,
        prompt_tokens=reply.prompt_tokens or asked,
        completion_tokens=reply.completion_tokens or about_tokens(reply.text),
    )


def _unseen(text: str) -> None:
    pass


@functools.cache
def _reply_decoder() -> Callable[[bytes], Reply]:
    from pyrag.llm.clients.openai_wire import decode_reply

    return decode_reply


def _models_decoder() -> Callable[[bytes], list[ModelInfo]]:
    from pyrag.llm.clients.openai_wire import decode_models

    return decode_models
