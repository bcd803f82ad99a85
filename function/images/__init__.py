"""Bytes to pixels and back: the only place that decodes or encodes a photo."""
