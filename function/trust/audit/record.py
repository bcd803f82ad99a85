"""What is written down about a swap, a refusal or a change of who may: facts, and no picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.documented_enum import DocumentedEnum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.request_context import Sender


class AuditKind(DocumentedEnum):
    """What a line of the audit is about."""

    START = "start", "a process begins its chain"
    STOP = "stop", "a process ends its chain; nothing follows"
    WITNESS = "witness", "how far other chains are that a process sees in the same place"
    MISSED = "missed", "so many records could not be written while `EMBER_AUDIT_FAIL` is open"
    SWAP = "swap", "a swap was made, and its answer is about to be sent"
    REFUSAL = "refusal", "a request was refused by the gate"
    GRANT = "grant", "somebody's consent was enrolled"
    REVOCATION = "revocation", "a consent was taken back"
    DENY_LIST = "deny_list", "somebody was put on the deny-list, or taken off it"
    DELETION = "deletion", "what is stored of a caller was deleted"


@dataclass(frozen=True, slots=True)
class AuditedPerson:
    """One of several people whom a swap puts in.

    Attributes:
        sources: digests of the photos that show this person, made by `AuditLog.digest`.
        faces: places of the faces of the target that became this person's, as far as that is known.
        consent: likewise, of this person's own statement of consent.
    """

    sources: tuple[str, ...]
    faces: tuple[int, ...] = ()
    consent: str = ""

    def facts(self) -> dict[str, Any]:
        """What is written: only what is known."""
        every = {
            "sources": list(self.sources),
            "faces": list(self.faces),
            "consent": self.consent,
        }
        return {name: value for name, value in every.items() if value}


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One thing that has happened. It has no image, no embedding and no name of a file.

    Attributes:
        kind: what it is.
        sender: who asked for it, by which way; his name is replaced by a digest when it is written.
        sources: digests of the photos of the person to put in, made by `AuditLog.digest`.
        target: likewise, of the photo or clip to be changed.
        reference: likewise, of the photo of the person to replace.
        references: likewise, of several of those.
        people: who was put onto which faces, where that are several people.
        output: likewise, of what was answered.
        models: the models that worked on it: role to the first digits of a digest.
        policy: likewise, of the rules that held.
        verdicts: what each part of the gate said.
        consent: digest of the statement of consent, made by `AuditLog.digest`.
        watermark: the payload of the mark in the output, 12 hexadecimal digits.
        code: of the problem that was answered, for a refusal.
        details: more facts of this kind, such as the counts of a deletion.
    """

    kind: AuditKind
    sender: Sender
    sources: tuple[str, ...] = ()
    target: str = ""
    reference: str = ""
    references: tuple[str, ...] = ()
    people: tuple[AuditedPerson, ...] = ()
    output: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    consent: str = ""
    watermark: str = ""
    code: str = ""
    details: Mapping[str, str | int] = field(default_factory=dict)

    def facts(self, caller: Callable[[str], str]) -> dict[str, Any]:
        """What is written: only what is known.

        Args:
            caller: what stands for the name of whoever asked.
        """
        sender = self.sender
        every = {
            "kind": str(self.kind),
            "entry": str(sender.entry),
            "request": sender.request_id,
            "caller": "" if sender.subject is None else caller(sender.subject),
            "tier": sender.tier,
            "sources": list(self.sources),
            "target": self.target,
            "reference": self.reference,
            "references": list(self.references),
            "people": [each.facts() for each in self.people],
            "output": self.output,
            "models": dict(self.models),
            "policy": self.policy,
            "verdicts": dict(self.verdicts),
            "consent": self.consent,
            "watermark": self.watermark,
            "code": self.code,
            "details": dict(self.details),
        }
        return {name: value for name, value in every.items() if value}
