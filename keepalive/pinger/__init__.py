"""Asking through the front door what a user would get."""
