"""Fetching files over networks that break, from servers that lie, into a store."""
