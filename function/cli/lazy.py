"""A click group whose subcommands are imported when they run, not when they are listed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

import function
from function import __version__
from function.cli.failure import Failure
from function.exits import Exit
from function.problems import Problem

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
    group = LazyGroup(entries, help="Swap faces, warm from the first request on.")
    click.version_option(__version__, message="ember %(version)s")(group)
    try:
        return int(group.main(prog_name="ember", standalone_mode=False, obj=_EMBEDDED) or 0)
    except click.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Failure as failure:
        return _failed(str(failure), failure.code)
    except Problem as problem:
        return _failed(f"{problem.detail} {problem.kind.hint}", Exit.BAD_INPUT)
    except Exception as error:
        # Those of other packages say themselves how to exit: importing them here would cost all.
        if not isinstance(code := getattr(error, "exit_code", None), int):
            raise
        return _failed(str(error), code)


def _failed(message: str, code: int) -> int:
    click.echo(f"Error: {message}", err=True)
    return code
