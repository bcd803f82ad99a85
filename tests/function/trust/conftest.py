"""What tests of trust share: an authority that signs, and a server that writes an audit."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from function.trust.marking import certificate_authority
from tests.function.live import Live
from tests.function.video.conftest import folder, plain

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["folder", "plain"]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder with the files of a test authority, and settings that sign with it."""
    place = tmp_path_factory.mktemp("certificates")
    made = certificate_authority.make(datetime.now(UTC))
    for name in ("authority", "chain", "key"):
        (place / f"{name}.pem").write_bytes(getattr(made, name))
    return {
        "c2pa_certificates": place / "chain.pem",
        "c2pa_key": place / "key.pem",
        "c2pa_anchors": place / "authority.pem",
    }


@contextmanager
def accounted(place: Path, **changes):
    """A server that writes its audit into a folder, and what reads the lines so far."""

    def lines(kind=None):
        texts = [path.read_text() for path in place.glob("*")]
        found = [json.loads(line) for text in texts for line in text.splitlines()]
        return [each for each in found if kind in {None, each["kind"]}]

    with Live(audit=place.as_uri(), **changes) as server:
        server.lines = lines
        yield server
