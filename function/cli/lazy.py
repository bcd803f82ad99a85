"""A click group whose subcommands are imported when they run, not when they are listed."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

import function
from function import __version__
from function.exits import Exit
from function.problems import Problem, RetryLaterError

if TYPE_CHECKING:
    from collections.abc import Mapping

_EMBEDDED = Path(function.__file__).parent / "models" / "models.toml"
"""The manifest that subcommands of other packages take when nothing names one."""


class LazyGroup(click.Group):
    """Lists its subcommands, and completes their names, from a table alone.

    Args:
        entries: for each subcommand where it is ("module:attribute") and what it does.
        help: what the group is for.
    """

    def __init__(self, entries: Mapping[str, tuple[str, str]], *, help: str) -> None:  # noqa: A002
        listed = [click.Command(name, short_help=line) for name, (_, line) in entries.items()]
        super().__init__("ember", commands=listed, help=help)
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names in the order of the table."""
        return list(self._entries)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand as click does, then put the real one into its place."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            module, _, attribute = self._entries[name][0].partition(":")
            command = cast("click.Command", getattr(import_module(module), attribute))
        return name, command, rest


def run(entries: Mapping[str, tuple[str, str]]) -> int:
    """Run `ember`: whatever is foreseen to fail ends with one line and an exit code.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not in tests
            stream.reconfigure(errors="replace")  # what the terminal's encoding lacks
    group = LazyGroup(entries, help="Swap faces, warm from the first request on.")
    click.version_option(__version__, message="ember %(version)s")(group)
    try:
        done = group.main(prog_name="ember", standalone_mode=False, obj=_EMBEDDED)
        sys.stdout.flush()  # while there is somebody to tell that it fails
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return Exit.INTERRUPTED
    except Exception as error:
        return _failed(*_foreseen(error))
    return int(done or 0)


def _foreseen(error: Exception) -> tuple[str, int]:
    """What to say and the exit code.

    Raises:
        Exception: `error` itself, which nobody has foreseen.
    """
    if isinstance(error, Problem):
        again = isinstance(error, RetryLaterError)
        return f"{error.detail} {error.hint}", Exit.UNAVAILABLE if again else Exit.BAD_INPUT
    if isinstance(error, OSError):
        # Python would try again at its end, and complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return f"The output cannot be written: {error.strerror}.", Exit.CANNOT_WRITE
    # Those of other packages say themselves how to exit: importing them here would cost all.
    if not isinstance(code := getattr(error, "exit_code", None), int):
        raise error
    return str(error), code


def _failed(message: str, code: int) -> int:
    click.echo(f"Error: {message}", err=True)
    return code
