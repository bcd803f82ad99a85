"""Every setting of Ember: environment variables, read once at start and handed down in groups."""

from function.settings.settings import Settings, load

__all__ = ["Settings", "load"]
