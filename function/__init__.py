"""The serving process: photos in over HTTP, swapped faces out."""

__version__ = "0.1.0"
