"""What tests of fetching share: small settings, models of random bytes, servers."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from tests.warmup.objects.hostile import hostile
from warmup.models.file import File
from warmup.models.manifest import Model
from warmup.models.store import Store
from warmup.settings.settings import StoreSettings
from warmup.settings.variables import build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.warmup.objects.hostile import Site


@pytest.fixture
def site() -> Iterator[Site]:
    """A server whose behaviour the test chooses."""
    with hostile() as site:
        yield site


@pytest.fixture
def store(tmp_path) -> Store:
    """The store of `settings`."""
    return Store(tmp_path / "store")


@pytest.fixture
def settings(store, small_parts, quick_retries) -> StoreSettings:
    """A store of the test's own and little patience."""
    return build(StoreSettings, store=store.root, fetch_stall_s=0.3, fetch_retries=2)


def content_of(size: int, seed: int = 0) -> bytes:
    """Bytes that do not repeat."""
    return random.Random(seed).randbytes(size)


def file_of(content: bytes, uri: str, name: str = "detect", path: Path | None = None) -> File:
    """The manifest's words for some content."""
    return File(name, uri, len(content), hashlib.sha256(content).hexdigest(), path)


def model_of(file: File) -> Model:
    """A model with one file."""
    return Model(file.name, "some", file, "MIT")


@pytest.fixture
def small_parts(monkeypatch) -> None:
    """Parts of 64 KiB, so that small files have several; the bench uses the real size."""
    monkeypatch.setattr("warmup.models.partial.PART", 64 * 1024)


@pytest.fixture
def quick_retries(monkeypatch) -> None:
    """No waiting between attempts, but for what a server asks."""
    monkeypatch.setattr("random.Random.uniform", lambda *_: 0.001)
