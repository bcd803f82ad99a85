"""Swaps that no connection waits for: jobs and events."""
