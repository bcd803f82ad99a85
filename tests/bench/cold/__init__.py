"""Cold starts of Ember and of others, side by side; see `__main__`."""
