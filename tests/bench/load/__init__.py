"""Ember and others under load, side by side; see `__main__`."""
