"""The command `ember`: the subcommands of all packages under one name.

A package is imported only when one of its subcommands runs, and click only when there is one to
run, so that every image needs no more than what it does.
"""

from __future__ import annotations

import sys
from typing import NamedTuple, NoReturn

from function.exits import Exit


class Entry(NamedTuple):
    """Where a subcommand is, as "module:attribute", and what `ember --help` says about it."""

    place: str
    help: str


COMMANDS = {
    "serve": Entry("function.cli.serve:serve", "Serve over HTTP, with a page to try it."),
    "swap": Entry("function.cli.swap:swap", "Put a face onto the photos of a file or folder."),
    "faces": Entry("function.cli.faces:faces", "List the faces of a photo, or draw them."),
    "config": Entry("function.cli.config:config", "Show the settings and where each came from."),
    "ping": Entry("keepalive.cli:ping", "Ask a server whether it is ready."),
    "verify": Entry("warmup.cli:verify", "Check the files of a model manifest."),
}


def main() -> NoReturn:
    """Run `ember` with the words of the command line, and exit."""
    try:
        from function.cli.lazy import run

        sys.exit(run(COMMANDS))
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        print(
            f"The command ember needs {error.name}: pip install 'ember-function[cli]'\n"
            "To serve, it is not needed: python -m function",
            file=sys.stderr,
        )
        sys.exit(Exit.UNAVAILABLE)
