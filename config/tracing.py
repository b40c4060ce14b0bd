"""OpenTelemetry: off, unless OTEL_EXPORTER_OTLP_ENDPOINT (or its form for traces) says where spans go."""

import os

import structlog

log = structlog.get_logger(__name__)

_WHERE = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def configure(service: str) -> bool:
    """Have this process, one of `service`, send its spans in the background, by the standard OTEL_ variables.
    False where nobody wants them, or what sends them is not installed."""
    if not any(os.environ.get(name) for name in _WHERE):
        return False
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning("tracing_not_installed", extra="otel", error=str(error))
        return False
    named = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or service})
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True
