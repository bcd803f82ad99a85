"""`ember serve`."""

from __future__ import annotations

import click


@click.command()
def serve() -> int:
    """Serve over HTTP, with a page to try it.

    All settings are environment variables; `ember config` shows them.
    """
    from function.process.start import run

    return run()
