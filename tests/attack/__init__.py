"""Hostile input against a real replica: `make attack`. Loopback only, and bounded."""
