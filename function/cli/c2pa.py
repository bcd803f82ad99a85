"""`ember c2pa`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from function.cli.files import make_folder, unwritable
from function.extras import needing


@click.group()
def c2pa() -> None:
    """Make certificates to try signing with (C2PA)."""


@c2pa.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--days",
    type=click.IntRange(1, 365),
    default=30,
    show_default=True,
    help="For how long the certificates are valid.",
)
@click.option(
    "--algorithm",
    type=click.Choice(["es256", "es384", "es512", "ps256", "ed25519"]),
    default="es256",
    show_default=True,
    help="How the key signs.",
)
def test_ca(folder: Path, days: int, algorithm: str) -> None:
    """Make an authority for trials in FOLDER, with a certificate that signs and its key.

    Everything that is signed with it says that nobody should trust it. For outputs that others see,
    get a certificate of an authority on the trust list of C2PA.
    """
    with needing("ember c2pa test-ca", "c2pa"):
        from function.trust.marking.certificate_authority import make
        from function.trust.marking.certificates import SignatureAlgorithm
    made = make(datetime.now(UTC), days, SignatureAlgorithm(algorithm))
    make_folder(folder)
    files = {"authority.pem": made.authority, "certificates.pem": made.chain, "key.pem": made.key}
    for name, content in files.items():
        _write(folder / name, content)
    click.echo(f"EMBER_C2PA_CERTIFICATES={folder / 'certificates.pem'}")
    click.echo(f"EMBER_C2PA_KEY={folder / 'key.pem'}")
    click.echo(f"EMBER_C2PA_ANCHORS={folder / 'authority.pem'}")


def _write(path: Path, content: bytes) -> None:
    """Write a file that is new and that only its owner may read."""
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(content)
    except OSError as error:
        raise unwritable(path, error) from None
