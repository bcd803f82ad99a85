"""What others see of a replica: logs, metrics, spans and timings."""
