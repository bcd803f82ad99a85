"""Bytes behind URIs: read with limits, written with preconditions, by scheme."""
