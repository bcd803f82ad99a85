"""Loads that are elastic, and what is planned for them."""
