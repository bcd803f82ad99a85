"""The service: bytes in, bytes out; the engines behind it, and what judges their results."""
