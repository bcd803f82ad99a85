"""`python -m warmup`."""

import sys

import click

from warmup.cli import commands
from warmup.failures import WarmupError
from warmup.variables import SettingsError

if __name__ == "__main__":
    try:
        commands(prog_name="python -m warmup")
    except (WarmupError, SettingsError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
