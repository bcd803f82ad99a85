"""What others see of a replica: logs, metrics, spans and timings.

Three things measure time. `spans.Span` is an operation in a distributed trace (OpenTelemetry).
`timings.StageTiming` is a stage of one request, for `Server-Timing`, the report and the metrics.
`warmup.timeline` has the spans of one cold start, for `GET /warmup`.
"""
