"""Asking the Redis that replicas share, over connections that may die at any time."""
