"""Deleting what is stored of one caller, with a receipt that stands in the audit."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from function.background.facts import moment
from function.background.jobs.job import owner_of
from function.background.records import RecordStoreError
from function.trust.audit.record import AuditKind, AuditRecord
from function.trust.gate.identity_list import IdentityListError
from warmup.objects.errors import ObjectError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from function.background.jobs.files import JobFiles
    from function.background.jobs.job import Job
    from function.background.jobs.store import JobStore
    from function.request_context import Sender
    from function.trust.audit.log import AuditLog

ENDING_S = 60.0
"""For so long a job that had not ended stays, cancelled: whoever works on it has to notice, and
what comes of it meanwhile is deleted with it."""

_AT_ONCE = 500


class SubjectData(Protocol):
    """Something else that is kept of callers, such as enrolments."""

    @property
    def name(self) -> str:
        """What is counted, in one word."""
        ...

    async def erase(self, subject: str) -> Sequence[str]:
        """Delete what is kept of a caller; what each piece of it was called."""
        ...


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What was deleted.

    Attributes:
        id: stands in the audit as well.
        time: when, in seconds of Unix time.
        counts: of jobs, of those among them that had not ended (`ending`), and of everything else.
        digest: of the names of all that was deleted, made by `AuditLog.digest`; "" without an
            audit.
    """

    id: str
    time: float
    counts: dict[str, int]
    digest: str

    def facts(self) -> dict[str, Any]:
        """As it is answered."""
        return {
            "receipt": self.id,
            "time": moment(self.time),
            "deleted": self.counts,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class Erasure:
    """Deletes what is stored of callers.

    Attributes:
        store: has jobs.
        files: has their photos, results and parts.
        end: cancels a job by its key and keeps its record for so many seconds.
        audit: gets a line for each deletion.
        more: what else is kept of callers.
    """

    store: JobStore
    files: JobFiles
    end: Callable[[str, float], Awaitable[object]]
    audit: AuditLog
    more: Sequence[SubjectData] = ()

    async def erase(self, subject: str, sender: Sender) -> ErasureReceipt:
        """Delete all that is stored of a caller.

        A job that has not ended is cancelled; its record goes a minute later.

        Args:
            subject: whose.
            sender: who wants it.

        Raises:
            RecordStoreError: not all could be deleted; ask again.
            Problem: `audit_unavailable`: it is deleted, and that could not be written down.
        """
        jobs = await self._jobs(subject)
        counts = {"jobs": len(jobs), "ending": sum(job.state.open for job in jobs)}
        names = [job.spec.key for job in jobs]
        for job in jobs:
            await self._delete(job)
        for each in self.more:
            try:
                deleted = await each.erase(subject)
            except (ObjectError, IdentityListError, OSError) as error:
                raise RecordStoreError(f"{each.name}: {error}") from error
            counts[each.name] = len(deleted)
            names += deleted
        digest = self.audit.digest("\n".join(sorted(names)).encode())
        receipt = ErasureReceipt(secrets.token_hex(16), time.time(), counts, digest)
        named = {"receipt": receipt.id, "of": self.audit.digest(subject.encode()), "digest": digest}
        record = AuditRecord(AuditKind.DELETION, sender, details={**named, **counts})
        await self.audit.write(record)
        return receipt

    async def _jobs(self, subject: str) -> list[Job]:
        """All jobs of a caller."""
        found: dict[str, Job] = {}
        start, owner = 0, owner_of(subject)
        while more := await self.store.of(owner, start, _AT_ONCE):
            start += len(more)
            found |= {job.spec.key: job for job in more}
        return list(found.values())

    async def _delete(self, job: Job) -> None:
        if job.state.open:
            await self.end(job.spec.key, ENDING_S)
        await self.files.drop(job.kept)
        if not job.state.open:
            await self.store.forget(job.spec.key)
