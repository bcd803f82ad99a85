"""The process: its start, its port and its life, and where its parts are put together."""
