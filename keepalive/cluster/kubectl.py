"""The operator's own kubectl: what it says, and in one line what it complains of."""

from __future__ import annotations

import re
import shlex
import subprocess

from keepalive.failure import Exit, Failure

_PATIENCE_S = 60
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:")
"""How a line of its own log begins, which tells each of its tries."""


def ran(kubectl: str, *words: str) -> str:
    """What kubectl writes.

    Args:
        kubectl: the command, perhaps with options, as `kubectl --context mine`.
        words: its arguments.

    Raises:
        Failure: it is not there, fails, or does not end.
    """
    first = shlex.split(kubectl) or ["kubectl"]
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own
            [*first, *words], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except FileNotFoundError:
        raise _unavailable(f"there is no {first[0]}; install it, or say where it is") from None
    except OSError as error:
        raise _unavailable(f"{first[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise _unavailable(f"{first[0]} did not answer within {_PATIENCE_S} s") from None
    if done.returncode:
        said = complaint(done.stderr) or f"exit code {done.returncode}"
        raise _unavailable(f"{' '.join([first[0], *words[:2]])}: {said}")
    return done.stdout


def complaint(text: str) -> str:
    """What kubectl complains of, in one line, without its log."""
    lines = [line for line in text.splitlines() if not _LOGGED.match(line)]
    return " ".join(" ".join(lines or text.splitlines()).split())


def _unavailable(message: str) -> Failure:
    return Failure(message, Exit.UNAVAILABLE)
