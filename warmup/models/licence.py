"""Which licences ask nothing of an operator but to keep the notices."""

from __future__ import annotations

import re

PERMISSIVE = frozenset({
    "0BSD", "Apache-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-3.0",
    "CC-BY-4.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "NCSA", "PSF-2.0", "Unlicense", "Zlib",
})  # fmt: skip
"""SPDX identifiers."""


def permissive(expression: str) -> bool:
    """Whether an SPDX expression leaves a choice that is permissive in all its parts.

    Only names joined by AND and OR are understood; everything else counts as not permissive.
    """
    choices = re.split(r"\s+OR\s+", expression.strip())
    return any(set(re.split(r"\s+AND\s+", choice)) <= PERMISSIVE for choice in choices)
