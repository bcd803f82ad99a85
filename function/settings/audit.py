"""Settings of the account that is kept of what was done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warmup.settings.readers import (
    Reader,
    amount,
    choice,
    folder,
    folder_uri,
    seconds,
    switch,
)
from warmup.settings.variables import variable


def _audit_place() -> Reader[str]:
    """Where an audit goes."""
    uri = folder_uri()

    def parse(given: str) -> str:
        return given.lower() if given.lower() in {"off", "stdout"} else uri.read(given)

    return Reader(parse, "off, stdout, or a URI like gs://bucket/audit/ or file:///folder/")


def _key_file() -> Reader[Path]:
    """A file; what serves opens it, and whatever else has the same settings need not have it."""
    return Reader(lambda given: Path(given).expanduser(), "the path of a file")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The audit: a chained line for each swap, refusal, grant and deletion."""

    audit: str = variable(
        "off",
        _audit_place(),
        "Where the audit goes: `stdout`, a folder with a file for each process (`file:///folder/`),"
        " or a bucket (`gs://bucket/audit/`). Every overlay sets `stdout`.",
    )
    audit_key: Path | None = variable(
        None,
        _key_file(),
        "The file of keys for its codes and digests; `ember audit key` makes one. The first key"
        " writes, the others are for what was written before.",
        shown_default="none: plain SHA-256, which proves less",
    )
    audit_fail: str = variable(
        "closed",
        choice("closed", "open"),
        "When a line cannot be written: `closed` answers 503 in place of the swap; with `open` the"
        " swap is answered, counted, and the next line that can be written says how many are"
        " missing.",
    )
    audit_fsync: bool = variable(
        False,
        switch(),
        "Whether an answer waits until its line is on the disk, and not only with the system: it"
        " then outlives the machine, and not only the process.",
        shown_default="false",
    )
    audit_subjects: str = variable(
        "digest",
        choice("digest", "name"),
        "How callers stand in the audit: by a digest of their subject, or by the subject itself.",
    )
    audit_spool: Path | None = variable(
        None,
        folder(),
        "Where lines are kept until they are in the bucket. It should outlive a restart of the"
        " container, as an `emptyDir` does.",
        shown_default="`ember-audit` in the folder for temporary files",
    )
    audit_spool_bytes: int = variable(
        64 * 1024**2,
        amount(64 * 1024),
        "The most bytes of a process that wait there; beyond that `EMBER_AUDIT_FAIL` decides.",
        shown_default="64MiB",
    )
    audit_window_s: float = variable(
        60.0,
        seconds(1, 86_400),
        "How many seconds of lines become one object of the bucket.",
    )
