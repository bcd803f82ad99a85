"""Loads over time: read from files, or made."""
