"""Errors that name the extra which a setting needs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from warmup.extras import bring
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Say what needs which extra when a module that the body imports is not there.

    Raises:
        SettingsError: in place of a ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingsError([f"{what} needs {error.name}: {bring(extra)}"]) from None


@contextmanager
def needing_redis(setting: str = "EMBER_REDIS_URL") -> Iterator[None]:
    """Say what is wrong when the body cannot use the Redis of a setting.

    Raises:
        SettingsError: also when the address is none.
    """
    with needing(setting, "redis"):
        try:
            yield
        except (ValueError, OSError) as error:
            raise SettingsError([f"{setting} cannot be used: {error}."]) from None
