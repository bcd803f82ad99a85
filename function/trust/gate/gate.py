"""The gate: asked before a swap is made, and where it matters again before it is answered.

Light to import and to make; what is heavy is in the models and embeddings that its methods get.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from function.trust.gate.consent import ConsentKind, ConsentPolicy
from function.trust.gate.content import ContentGate, covered
from function.trust.gate.verdict import GateCheck, GateRefusedError, GateVerdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.identity import Metric
    from function.faces.models import Models
    from function.settings.gate import GateSettings
    from function.trust.gate.consent import ConsentStatement
    from function.trust.gate.identity_list import IdentityModel
    from function.trust.gate.kept_list import KeptList
    from function.trust.gate.shots import FrameSampler
    from warmup.models.manifest import Model

_CONTENT = "The {what} shows what is not swapped here."
_LISTED = "A person in one of the photos may not be swapped here."
_ENROLLED = "The person to put in is not one of those who have agreed to it here."
_YOUNG = "Somebody in the {what} photo may be too young."


@dataclass(frozen=True, slots=True)
class AgeGate:
    """Decides from ages.

    Attributes:
        least: how many years somebody has to look, the margin included.
    """

    least: float

    def verdict(self, years: Sequence[float]) -> GateVerdict:
        """What some people's ages mean. One that is not a number is refused."""
        return GateVerdict(GateCheck.AGE, all(each >= self.least for each in years))


@dataclass(slots=True)
class Gate:
    """Refuses swaps. Its methods raise `GateRefusedError`, and may be called from any thread.

    Attributes:
        on: whether pictures are looked at.
        content, ages, consents: what decides.
        deny: people who are neither source nor target; None without a list.
        enrolled: people who have agreed to be sources; None without a list.
        only_enrolled: whether nobody else is a source.
        listeners: called with each verdict, in the thread that asked.
    """

    on: bool
    content: ContentGate
    ages: AgeGate
    consents: ConsentPolicy = field(default_factory=ConsentPolicy)
    deny: KeptList | None = None
    enrolled: KeptList | None = None
    only_enrolled: bool = False
    listeners: list[Callable[[GateVerdict], None]] = field(default_factory=list)

    def consent(
        self,
        given: str | None,
        tier: str | None = None,
        people: Mapping[str, Sequence[bytes]] | None = None,
    ) -> ConsentStatement | None:
        """What a request says of consent; None where nothing is said and nothing has to be.

        Args:
            given: its field `consent`.
            tier: the word of the caller's tier; see `ConsentKind`.
            people: the people to put in by name, with their photos, as files.

        Raises:
            GateRefusedError: `consent_required`.
        """
        try:
            found = self.consents.check(given, ConsentKind(tier) if tier else None, people or {})
        except GateRefusedError as error:
            self._tell(error.verdict)
            raise
        if found:
            self._tell(GateVerdict(GateCheck.CONSENT, allowed=True, note=str(found.kind)))
        return found

    def target(
        self, models: Models, pixels: NDArray[np.uint8], what: str = "target"
    ) -> GateVerdict | None:
        """Look at a target, or a frame of one, before anything is done with it.

        Args:
            models: with one for `gate`.
            pixels: uint8 [H, W, 3] RGB.
            what: "target" or "clip", for the caller.

        Returns:
            None while pictures are not looked at.

        Raises:
            GateRefusedError: `refused_content`.
        """
        if not self.on:
            return None
        return self._decided(
            self.content.verdict(_look(models, pixels)), "refused_content", _CONTENT, what
        )

    def output(
        self,
        models: Models,
        pixels: NDArray[np.uint8],
        target: GateVerdict | None,
        faces: Sequence[Face],
    ) -> GateVerdict | None:
        """Look at a result, where it can look otherwise than its target.

        Args:
            models: with one for `gate`, and one for `swap` if a model generates faces.
            pixels: uint8 [H, W, 3] RGB.
            target: what was said of the target.
            faces: those that were swapped.

        Returns:
            None where it need not be looked at.

        Raises:
            GateRefusedError: `refused_content`.
        """
        if not self.on:
            return None
        score = 1.0 if target is None or target.score is None else target.score
        part = covered(faces, (pixels.shape[1], pixels.shape[0]))
        if not self.content.needs_second_look(score, part, generated=models.swap is not None):
            return None
        verdict = self.content.verdict(_look(models, pixels), GateCheck.OUTPUT)
        return self._decided(verdict, "refused_content", _CONTENT, "result")

    def people(
        self,
        metric: Metric,
        people: Sequence[Sequence[NDArray[np.float32]]],
        targets: Sequence[NDArray[np.float32]],
    ) -> list[GateVerdict]:
        """Look whether people are on lists.

        Args:
            metric: compares embeddings.
            people: float32 [n] of each person to put in, one for each photo.
            targets: likewise, of the faces that would be swapped.

        Raises:
            GateRefusedError: `refused_identity`.
        """
        now, verdicts = datetime.now(UTC), []
        if self.deny:
            listed, sources = self.deny.people, chain.from_iterable(people)
            found = (listed.match(each, metric, now) for each in (*sources, *targets))
            match = next(filter(None, found), None)
            verdict = GateVerdict(GateCheck.DENY_LIST, match is None, match.id if match else "")
            verdicts.append(self._decided(verdict, "refused_identity", _LISTED))
        if self.enrolled and self.only_enrolled:
            verdicts.append(self._agreed(self.enrolled, metric, people, now))
        return verdicts

    def age(
        self, models: Models, pixels: NDArray[np.uint8], faces: Sequence[Face], what: str
    ) -> GateVerdict | None:
        """Look whether people are old enough, where there is a model for it.

        Args:
            models: perhaps with one for `age`.
            pixels: uint8 [H, W, 3] RGB.
            faces: of the people to put in, or whose faces would be swapped.
            what: "source" or "target", for the caller.

        Returns:
            None where nobody's age is known.

        Raises:
            GateRefusedError: `refused_age`.
        """
        if models.age is None or not faces:
            return None
        verdict = self.ages.verdict(models.age.years(pixels, faces))
        return self._decided(verdict, "refused_age", _YOUNG, what)

    def shots(self) -> FrameSampler:
        """Says of the frames of one clip, in order, which are to be looked at."""
        from function.trust.gate.shots import FrameSampler

        return FrameSampler()

    def facts(self) -> dict[str, Any]:
        """How it is, for `/readyz`."""
        lists = {"deny_list": self.deny, "consent_list": self.enrolled}
        return {
            "gate": "on" if self.on else "off",
            "sources": "enrolled" if self.only_enrolled else "any",
            "consent": str(self.consents.wanted),
            **{name: kept.facts() for name, kept in lists.items() if kept},
        }

    @asynccontextmanager
    async def running(self, _: object = None) -> AsyncIterator[None]:
        """Read the lists, and then again whenever they change, until the body ends.

        Raises:
            SettingsError: one cannot be read at first.
        """
        kept = [each for each in (self.deny, self.enrolled) if each]
        for each in kept:
            await each.start()
        watching = [asyncio.create_task(each.run()) for each in kept]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            for each in kept:
                await each.close()

    def _agreed(
        self,
        enrolled: KeptList,
        metric: Metric,
        people: Sequence[Sequence[NDArray[np.float32]]],
        now: datetime,
    ) -> GateVerdict:
        """Whether of each person every photo shows the same person of the list."""
        found = [
            {
                match.id if (match := enrolled.people.match(each, metric, now)) else ""
                for each in photos
            }
            for photos in people
        ]
        agreed = bool(found) and all(len(ids) == 1 and "" not in ids for ids in found)
        note = " ".join(chain.from_iterable(found)) if agreed else ""
        verdict = GateVerdict(GateCheck.CONSENT_LIST, agreed, note)
        return self._decided(verdict, "refused_identity", _ENROLLED)

    def _decided(self, verdict: GateVerdict, code: str, detail: str, what: str = "") -> GateVerdict:
        self._tell(verdict)
        if verdict.allowed:
            return verdict
        raise GateRefusedError(code, detail.format(what=what), verdict)

    def _tell(self, verdict: GateVerdict) -> None:
        for listener in self.listeners:
            listener(verdict)


def build_gate(settings: GateSettings, identity: IdentityModel) -> Gate:
    """A gate from settings; its lists are read by `Gate.running`.

    Args:
        settings: of the gate.
        identity: the identity model that serves.

    Raises:
        SettingsError: what the settings name cannot be used.
    """
    return Gate(
        settings.gate,
        ContentGate(settings.gate_threshold),
        AgeGate(settings.gate_least_age + settings.gate_age_margin),
        ConsentPolicy(ConsentKind(settings.consent), _tokens(settings)),
        _list(settings.deny_list, identity),
        _list(settings.consent_list, identity),
        settings.sources == "enrolled",
    )


def gated(manifest: Sequence[Model], embedded: Sequence[Model], *, on: bool) -> tuple[Model, ...]:
    """The models of a replica: those of its manifest, and a gate where it is to have one.

    Args:
        manifest: perhaps without a model for the role `gate`.
        embedded: the models that ship with Ember.
        on: whether pictures are looked at; otherwise no model for that is loaded.
    """
    if not on:
        return tuple(model for model in manifest if model.role != "gate")
    if any(model.role == "gate" for model in manifest):
        return tuple(manifest)
    return (*manifest, *(model for model in embedded if model.role == "gate"))


def _list(uri: str | None, identity: IdentityModel) -> KeptList | None:
    if uri is None:
        return None
    from function.trust.gate.kept_list import KeptList, store_of

    return KeptList(uri, store_of(uri), identity)


def _tokens(settings: GateSettings) -> Any:
    if settings.consent_keys is None:
        return None
    from function.extras import needing

    with needing("EMBER_CONSENT_KEYS", "auth"):
        from function.trust.gate.consent_tokens import SignedConsent
    return SignedConsent.of(settings.consent_keys)


def _look(models: Models, pixels: NDArray[np.uint8]) -> float:
    if models.gate is None:
        raise RuntimeError("the gate is on, and there is no model for it")
    return models.gate.look(pixels)
