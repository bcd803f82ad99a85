"""`ember keys`."""

from __future__ import annotations

from pathlib import Path

import click

from function.admission import keys as api_keys
from function.admission.caller import SUBJECT
from function.cli.files import unwritable
from function.request_context import Lane

_LANES = [str(lane) for lane in Lane]


@click.group()
def keys() -> None:
    """Make API keys, for EMBER_AUTH=keys.

    The file that EMBER_KEYS names has a line for each key, with a hash in place of the key. A key
    is withdrawn by deleting its line; a running server sees that within a second or two.
    """


@keys.command()
@click.argument("subject")
@click.option("--tier", default="free", show_default=True, help="A tier of the policy.")
@click.option("--lane", type=click.Choice(_LANES), help="If not the tier's highest lane.")
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add the line to this file, and print the key alone.",
)
def new(subject: str, tier: str, lane: str | None, path: Path | None) -> None:
    """Make a key for SUBJECT, whose tokens its requests will spend.

    Prints the key, which is shown only this once, and its line for the file.
    """
    if not SUBJECT.fullmatch(subject) or "#" in subject:
        raise click.UsageError("SUBJECT is 1 to 255 visible ASCII characters without # or spaces.")
    if not tier or set(tier) & set("# \t\r\n"):
        raise click.UsageError("The name of a tier has neither # nor spaces.")
    key, line = api_keys.new(subject, tier, Lane(lane) if lane else None)
    if path:
        _add(path, line)
    click.echo(key)
    if not path:
        click.echo(line)


def _add(path: Path, line: str) -> None:
    """Add a line to a file that only its owner may read when it is new."""
    try:
        if not path.exists():
            path.touch(mode=0o600)
        text = path.read_text("utf-8")
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if text and not text.endswith("\n") else "") + line + "\n")
    except OSError as error:
        raise unwritable(path, error) from None
