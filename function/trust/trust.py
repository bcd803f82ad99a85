"""What every swap passes through besides being made: who decides, marks, and keeps account."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from function.trust.audit.log import NoAudit
from function.trust.audit.record import AuditKind, AuditRecord
from function.trust.gate.content import ContentGate
from function.trust.gate.gate import AgeGate, Gate
from function.trust.gate.verdict import GateRefusedError
from function.trust.marker import Marker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from function.faces.models import Models
    from function.request_context import Sender
    from function.telemetry.timings import Timings
    from function.trust.audit.log import AuditLog
    from function.trust.case import Case, Run, Wish

_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class TierDuties:
    """What a tier asks of its callers' swaps, beyond what the operator asks of all.

    Attributes:
        consent: a word of `ConsentKind`; None for nothing more.
        label: whether outputs have a label that people see.
    """

    consent: str | None = None
    label: bool = False


def _open_gate() -> Gate:
    """A gate that refuses nothing."""
    return Gate(False, ContentGate(1.0), AgeGate(0.0))


@dataclass(slots=True)
class Trust:
    """The parts of trust. It is light to import and to make.

    Attributes:
        gate: decides.
        marker: marks.
        audit: keeps what was done.
        duties: what each tier asks of swaps, by its name.
        policy: the first digits of a digest of the rules that hold.
        models: gives the models that work, by role, with the first digits of their digests.
        on_refused: called in the event loop with the code of each refusal.
    """

    gate: Gate = field(default_factory=_open_gate)
    marker: Marker = field(default_factory=Marker)
    audit: AuditLog = field(default_factory=NoAudit)
    duties: Mapping[str, TierDuties] = field(default_factory=dict)
    policy: str = ""
    models: Callable[[], Mapping[str, str]] = dict
    on_refused: Callable[[str], None] = lambda _: None

    def open(self, models: Models, run: Run, timings: Timings, wish: Wish) -> Case:
        """The way of one swap, for the request that the code works for; see `Case`."""
        from function.trust.case import Case

        return Case(self, models, run, timings, wish)

    def duties_of(self, sender: Sender) -> TierDuties:
        """What the tier of a sender asks of swaps."""
        return self.duties.get(sender.tier, TierDuties())

    def check_label(self, asked: str | None, sender: Sender) -> None:
        """Refuse a request whose label cannot be, before it costs anything.

        Args:
            asked: its field `label`.
            sender: who asks.

        Raises:
            Problem: `forbidden`, `bad_value`.
        """
        self.marker.labels.check(asked, required=self.duties_of(sender).label)

    async def require_consent(self, given: str | None, sender: Sender) -> None:
        """Refuse a request that says nothing where it has to, before it costs anything.

        Args:
            given: its field `consent`; what it says is looked at with the photos.
            sender: who asks.

        Raises:
            GateRefusedError: `consent_required`.
        """
        if given and given.strip():
            return
        try:
            self.gate.consent(None, self.duties_of(sender).consent)
        except GateRefusedError as refused:
            await self.account_for(AuditRecord(AuditKind.REFUSAL, sender), refused)
            raise

    async def account_for(self, record: AuditRecord, refused: GateRefusedError) -> None:
        """Count a refusal and write it down.

        Args:
            record: what is known of the request.
            refused: why.

        Raises:
            RetryLaterError: `audit_unavailable`.
        """
        self.on_refused(refused.code)
        if self.audit.enabled:
            verdicts = {**record.verdicts, **refused.verdicts}
            await self.audit.write(replace(record, code=refused.code, verdicts=verdicts))

    def facts(self) -> dict[str, Any]:
        """How it is, for `/readyz`."""
        return {**self.gate.facts(), **self.marker.facts(), "audit": self.audit.enabled}

    @asynccontextmanager
    async def running(self, _: object = None) -> AsyncIterator[None]:
        """Read lists and open the audit; at the end, close them."""
        async with self.gate.running():
            await self.audit.start()
            try:
                yield
            finally:
                await self.audit.close(_CLOSE_S)
