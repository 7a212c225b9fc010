"""OpenTelemetry (the extra `otel`): whether, and where, the spans of questions are exported.

Questions, queries and answers are exported only if `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` enables content
of spans. Spans are made directly (`pyrag.runtime.spans`) rather than with `opentelemetry-util-genai`, whose spans start
when they are created, since searches are only reported when they end. Nothing is imported unless spans are enabled.
Metrics and logs are not exported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import pyrag_runtime
from pyrag.errors import ConfigError, UsageError, install_extra
from pyrag.runtime.spans import QuestionSpans
from pyrag.trace.events import Event, Observer, ignore

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_RECEIVERS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")
_CONTENT_OF_SPANS = ("SPAN_ONLY", "SPAN_AND_EVENT")
_SCOPE = "pyrag"


@contextmanager
def with_spans(wanted: bool | None, observer: Observer) -> Iterator[Observer]:
    """Yield an observer that also makes spans of a question's events, or the same observer if spans are disabled.

    Args:
        wanted: The setting `otel`.
        observer: Observer that also receives the events.

    Raises:
        UsageError: Spans are enabled, but the extra is not installed.
        ConfigError: The variables name an unsupported exporter or protocol.
    """
    if not is_wanted(wanted):
        yield observer
        return
    tracer = _tracer(wanted)
    if tracer is None:
        yield observer
        return
    spans = QuestionSpans(tracer, content=os.environ.get(CAPTURE, "").upper() in _CONTENT_OF_SPANS)
    try:
        yield spans if observer is ignore else _both(spans, observer)
    except BaseException as error:
        spans.end_all(type(error).__name__)
        raise
    spans.end_all()


@contextmanager
def with_caller(wanted: bool | None, headers: Mapping[str, str]) -> Iterator[None]:
    """Make the span named in a request's headers (`traceparent`) the parent of the spans of its questions.

    Args:
        wanted: The setting `otel`.
        headers: Headers of the request, with names in lower case.
    """
    if not is_wanted(wanted) or "traceparent" not in headers:
        yield
        return
    try:
        from opentelemetry import context, propagate
    except ImportError:  # the first question reports this if it matters
        yield
        return
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def is_wanted(wanted: bool | None) -> bool:
    """Return the setting; for None, return whether the process exports spans (by variables or by its own provider).

    Args:
        wanted: The setting `otel`.
    """
    if wanted is not None:
        return wanted
    environ = os.environ
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return _names_receiver() or "opentelemetry.sdk.trace" in sys.modules


def _names_receiver() -> bool:
    return any(os.environ.get(name) for name in _RECEIVERS)


def _both(spans: Observer, observer: Observer) -> Observer:
    def observe(event: Event) -> None:
        spans(event)
        observer(event)

    return observe


def _tracer(wanted: bool | None) -> Tracer | None:
    """Return a tracer from the process's provider or, if spans are enabled, from a provider that exports by itself."""
    try:
        from opentelemetry import trace

        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):  # no provider has been set
            if not (wanted or _names_receiver()):
                return None
            provider = own_provider()
    except ImportError as error:
        if not wanted:  # the variables may be meant for other programs
            return None
        raise UsageError(f"--otel needs {error.name}, which is not installed: {install_extra('otel')}") from error
    return provider.get_tracer(_SCOPE, pyrag_runtime.version())


@cache
def own_provider() -> TracerProvider:
    """Return a provider that exports in the background, and exports the remaining spans when the process ends."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider as Provider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    exporter: SpanExporter
    match os.environ.get("OTEL_TRACES_EXPORTER") or "otlp":
        case "otlp":
            exporter = _otlp_exporter()
        case "console":
            exporter = ConsoleSpanExporter(sys.stderr)
        case other:
            raise ConfigError(f"OTEL_TRACES_EXPORTER must be otlp, console or none, not {other!r}")
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "pyrag"}))
    made = Provider(resource=resource)
    made.add_span_processor(BatchSpanProcessor(exporter))
    provider: TracerProvider = made
    return provider


def _otlp_exporter() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in (None, "", "http/protobuf"):
        raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not {protocol!r}")
    return OTLPSpanExporter()
