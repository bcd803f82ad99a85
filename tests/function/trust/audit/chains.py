"""What tests of the audit share: records, chains that are written for real, and looking at them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from function.request_context import Entry, Sender
from function.trust.audit.chained import AuditRules, ChainedAudit
from function.trust.audit.keyring import AuditKey
from function.trust.audit.line import AuditFile, read
from function.trust.audit.record import AuditKind, AuditRecord
from function.trust.audit.sinks.folder import FolderSink
from function.trust.audit.verify import AuditVerifier

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from function.trust.audit.verify import AuditReport

KEY, OTHER = AuditKey.of(b"k" * 32), AuditKey.of(b"o" * 32)


def swap(name: str = "r", subject: str | None = "ann", **facts: object) -> AuditRecord:
    """The record of a swap."""
    return AuditRecord(AuditKind.SWAP, Sender(Entry.HTTP, name, subject, "free"), **facts)


@asynccontextmanager
async def auditing(sink, key: AuditKey = KEY, uploads=None, **rules) -> AsyncIterator[ChainedAudit]:
    """An audit that has begun; it ends with the body."""
    audit = ChainedAudit(sink, AuditRules(key, **rules), uploads)
    await audit.start()
    try:
        yield audit
    finally:
        await audit.close(5.0)


async def written(
    folder: Path, names: Sequence[str] = ("a", "b", "c"), key: AuditKey = KEY
) -> Path:
    """The file of a chain in a folder: start, one line for each name, stop."""
    async with auditing(FolderSink(folder, fsync=False), key) as audit:
        for name in names:
            await audit.write(swap(name))
    return folder / f"{audit.chain}.jsonl"


def files(folder: Path, *, pure: bool = True) -> list[AuditFile]:
    """All files of a folder."""
    return [
        AuditFile(str(folder), path.name, path.read_bytes().splitlines(keepends=True), pure)
        for path in sorted(folder.iterdir())
        if path.is_file() and path.suffix in {".jsonl", ".log"}
    ]


def lines(folder: Path, *, pure: bool = True) -> list[dict]:
    """The facts of all lines of a folder."""
    return [line.facts for file in files(folder, pure=pure) for line in read(file)]


def report(
    found: Sequence[AuditFile] | Path, keys: Sequence[AuditKey] = (KEY,), since=None
) -> AuditReport:
    """What a check says."""
    verifier = AuditVerifier(keys, since)
    for file in files(found) if isinstance(found, Path) else found:
        verifier.add(file)
    return verifier.report()
