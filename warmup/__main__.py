"""`python -m warmup`."""

import sys
from typing import NoReturn

import click

from warmup.cli import commands
from warmup.failures import WarmupError
from warmup.settings.variables import SettingsError


def main() -> NoReturn:
    """Run a subcommand and exit; what is foreseen to fail ends with one line for each reason."""
    try:
        commands(prog_name="python -m warmup")
    except (WarmupError, SettingsError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    raise AssertionError("click exits by itself")


if __name__ == "__main__":
    main()
