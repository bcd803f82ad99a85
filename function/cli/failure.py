"""How a subcommand fails: one line on standard error and an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from function.exits import Exit


class Failure(Exception):
    """Ends the command with a message and an exit code; `Error: ` is put before it."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.exit_code = code
