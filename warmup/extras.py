"""How what is missing is installed, for errors."""

from __future__ import annotations


def bring(extra: str) -> str:
    """What to do to have an extra, e.g. "gcs"; Ember is on no index, so its name would not do."""
    return (
        f"make install EXTRAS={extra} in a checkout, elsewhere pip install 'WHEEL[{extra}]' with"
        " Ember's wheel"
    )
