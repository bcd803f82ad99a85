"""How getting models can fail; `exit_code` is that of the process, after BSD's sysexits."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w:/.~-])(?:file://)?/(?:[^\s/:,;'\"()]+/)*([^\s/:,;'\"()]+)")


class WarmupError(Exception):
    """Something that was foreseen to fail; its text says what, where and what to do."""

    exit_code = 70


class ManifestError(WarmupError):
    """The manifest cannot be used, or the settings do not fit it.

    Attributes:
        problems: one sentence for each thing that is wrong.
    """

    exit_code = 78

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DamagedError(WarmupError):
    """A file is not what the manifest says."""

    exit_code = 65


class OutsideError(ManifestError):
    """A model has weights in a file that the manifest does not name; no other try mends that."""

    final = True


class UnavailableError(WarmupError):
    """A source does not give the file: refused, not found, not reachable, too slow, offline."""

    exit_code = 69


class StoreError(WarmupError):
    """The store cannot take the file: full, read-only, not permitted, broken."""

    exit_code = 74


class StoppedError(WarmupError):
    """The work was asked to stop; what is there of it is kept."""

    exit_code = 130


def public_reason(error: Exception) -> str:
    """What of a failure may be published.

    The text is, when it is our own, and of paths in it only the last part; what other exceptions
    say may be anything, and is in the log only.
    """
    text = _PATH.sub(r"\1", f": {error}") if isinstance(error, WarmupError) else "; see the log"
    return type(error).__name__ + text
