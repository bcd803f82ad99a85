"""One swap on its way through all that it passes besides being made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from function import __version__
from function.faces.face import Box, embedding_of
from function.images import kinds
from function.quality_warning import QualityWarning
from function.request_context import current
from function.trust.audit.record import AuditedPerson, AuditKind, AuditRecord
from function.trust.gate.verdict import GateCheck, GateRefusedError, by_check
from function.trust.marking import metadata
from function.trust.marks import Marks
from function.trust.statement import SourceType, Statement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.models import Models
    from function.faces.swappers.protocol import SourceFace
    from function.images.picture import Picture
    from function.telemetry.timings import Timings
    from function.trust.gate.consent import ConsentStatement
    from function.trust.gate.verdict import GateVerdict
    from function.trust.marker import WatermarkedPlaces
    from function.trust.marking.c2pa_signer import C2paSigner
    from function.trust.marking.label_choice import Label
    from function.trust.trust import Trust

    Run = Callable[..., Awaitable[Any]]

_OWN = "warm-up"
"""The id of what no request is about."""


@dataclass(frozen=True, slots=True)
class MarkedFrame:
    """A frame of a clip with its marks: uint8 [H, W, 3] RGB, and where it differs from before."""

    pixels: NDArray[np.uint8]
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted, as far as trust has to know.

    Attributes:
        sources: photos of the people to put in, as files, each with the name of the person; "" is
            that of the only one.
        likes: photos of people to replace, likewise.
        target: the photo, or the clip.
        consent: that the people on the sources agree; see `SwapRequest`.
        label: the language of a visible label; None for what the operator has set.
        generated: whether a trained model generates the face.
    """

    sources: Sequence[tuple[str, bytes]]
    likes: Sequence[tuple[str, bytes]]
    target: bytes | Path
    consent: str | None = None
    label: str | None = None
    generated: bool = False


class Case:
    """One swap: looked at before it is made, marked when it is made, written down before an answer.

    It is an async context manager around the work. Its other methods compute, so they run in
    threads; of a clip several frames may be at hand at once.

    Args:
        trust: what decides, marks and writes.
        models: what looks at pictures.
        run: runs a function in a thread.
        timings: gets the spans `gate`, `mark` and `sign`, of a clip only what is not of one frame.
        wish: what is wanted.

    Attributes:
        marks: what it carries, as far as it is made.
        warnings: what a caller should know about that.
    """

    def __init__(
        self, trust: Trust, models: Models, run: Run, timings: Timings, wish: Wish
    ) -> None:
        self._trust, self._models, self._run, self._timings = trust, models, run, timings
        self._wish, self._sender = wish, current.get().sender
        self.marks = Marks(SourceType.GENERATED if wish.generated else SourceType.COMPOSED)
        self.warnings: tuple[QualityWarning, ...] = ()
        self._label: Label | None = None
        self._consent: ConsentStatement | None = None
        self._people: dict[str, list[NDArray[np.float32]]] = {}
        self._places: dict[str, list[int]] = {}
        self._verdicts: list[GateVerdict] = []
        self._shots = trust.gate.shots()

    async def __aenter__(self) -> Self:
        if self._sender is None:
            return self
        duties = self._trust.duties_of(self._sender)
        self._label = self._trust.marker.labels.wanted(self._wish.label, required=duties.label)
        if self._label:
            self.marks = replace(self.marks, label=self._label.text)
        try:
            self._consent = await self._run(self._agreed, duties.consent)
        except GateRefusedError as refused:
            await self._refused(refused)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if isinstance(error, GateRefusedError):
            await self._refused(error)

    @cached_property
    def statement(self) -> Statement:
        """What the output says of itself. Its target is read for it, so ask for it in a thread."""
        return Statement(
            self._request_id,
            self.marks.source_type,
            f"Ember {__version__}",
            self._trust.marker.producer,
            metadata.ingredients_of(self._wish.target),
        )

    @property
    def recipe(self) -> str:
        """Stands for how frames are marked: parts that differ in it do not fit together."""
        marker = self._trust.marker
        return repr((self._request_id, self._label, marker.which, marker.keys.current.id))

    @property
    def looks(self) -> bool:
        """Whether pictures are looked at."""
        return self._trust.gate.on

    @property
    def knows_people(self) -> bool:
        """Whether `check_people` has anything to look up."""
        gate = self._trust.gate
        return bool(gate.deny or self._models.age)

    def look(self, picture: Picture) -> None:
        """Look at a target, of which nothing is answered until then.

        Raises:
            GateRefusedError: it is refused.
        """
        with self._timings.span("gate"):
            self._note(self._trust.gate.target(self._models, picture.pixels))

    def look_at_frame(self, picture: Picture) -> None:
        """Look at a frame of a clip; raises as `look` does."""
        self._note(self._trust.gate.target(self._models, picture.pixels, "clip"))

    def begins_shot(self, picture: Picture) -> bool:
        """Whether a frame has to be looked at; they come one after the other."""
        return (self.looks or self.knows_people) and self._shots.wants(picture.pixels)

    def check_source(self, source: SourceFace, name: str = "") -> None:
        """See that the person of one source photo is old enough, and note who it is.

        Args:
            source: the photo.
            name: of the person, where there are several.

        Raises:
            GateRefusedError: the person is not.
        """
        self._people.setdefault(name, []).append(source.embedding)
        if self._models.age:
            with self._timings.span("gate"):
                pixels, faces = source.picture.pixels, [source.face]
                self._note(self._trust.gate.age(self._models, pixels, faces, "source"))

    def cast(self, faces: Sequence[Face]) -> None:
        """Note who is put onto which of the faces."""
        for face in faces:
            self._places.setdefault(face.person, []).append(face.index)

    def check_people(self, picture: Picture | None = None, faces: Sequence[Face] = ()) -> None:
        """See that nobody is in the swap who must not be; all sources are known by now.

        Args:
            picture: the target; None as long as only the sources are known.
            faces: those of it that are replaced, with their embeddings.

        Raises:
            GateRefusedError: somebody is.
        """
        gate, models = self._trust.gate, self._models
        if self._sender is None:
            return
        if picture is not None and models.age:
            self._note(gate.age(models, picture.pixels, faces, "target"))
        targets = [embedding_of(face) for face in faces]
        people = list(self._people.values())
        self._verdicts += gate.people(models.identity.metric, people, targets)

    def mark(self, picture: Picture, faces: Sequence[Face]) -> Picture:
        """Look at a swapped photo, where that is needed, and mark it.

        Args:
            picture: the result; its pixels are the caller's own, and change.
            faces: those that were swapped.

        Raises:
            GateRefusedError: it is refused.
        """
        gate, marker, pixels = self._trust.gate, self._trust.marker, picture.pixels
        seen = next((each for each in self._verdicts if each.check is GateCheck.CONTENT), None)
        with self._timings.span("gate"):
            self._note(gate.output(self._models, pixels, seen, faces))
        with self._timings.span("mark"):
            found = marker.watermark(pixels, faces, self._request_id)
            self._note_marks(found, faces)
            if self._label is None:
                return picture
            alpha = None if picture.alpha is None else picture.alpha.copy()
            marker.draw(pixels, self._label, alpha)
        return replace(picture, alpha=alpha)

    def mark_frame(
        self, pixels: NDArray[np.uint8], faces: Sequence[Face], at: float
    ) -> MarkedFrame:
        """Mark a frame of a clip.

        Args:
            pixels: uint8 [H, W, 3] RGB; the caller's own if there are faces, and changed then.
            faces: those that were swapped.
            at: when it is shown, in seconds.
        """
        marker, boxes = self._trust.marker, [face.box for face in faces]
        label = self._label if self._label and self._label.shown(at) else None
        if faces:
            found = marker.watermark(pixels, faces, self._request_id, steady=True)
            self._note_marks(found, ())
            if found.picture:
                boxes = [Box(0, 0, pixels.shape[1], pixels.shape[0])]
        elif label:
            pixels = pixels.copy()
        if label:
            boxes.append(marker.draw(pixels, label, steady=True))
        return MarkedFrame(pixels, tuple(boxes))

    def sign(self, data: bytes, media_type: str) -> bytes:
        """A photo or an animation with its metadata and, where outputs are signed, a signature.

        Raises:
            Problem: `unsignable`, `signing_failed`.
        """
        with self._timings.span("sign"):
            return self._signed(data, media_type)

    def _signed(self, data: bytes, media_type: str) -> bytes:
        data = metadata.mark(data, self.statement)
        if (signer := self._trust.marker.signer) is None or self._sender is None:
            return data
        target = self._wish.target
        ingredient = target if isinstance(target, bytes) else target.read_bytes()
        signed = signer.sign(
            data,
            media_type,
            self.statement,
            ingredient,
            kinds.media_type(ingredient),
            consent=self._consent_digest,
        )
        self._note_signature(signer, signed=signed is not None)
        return data if signed is None else signed

    def sign_file(self, path: Path, media_type: str) -> None:
        """Sign a video that has its metadata, in its place; raises as `sign` does."""
        if (signer := self._trust.marker.signer) is None:
            return
        with self._timings.span("sign"):
            target = self._wish.target
            ingredient = target if isinstance(target, Path) else None
            signed = signer.sign_file(
                path,
                media_type,
                self.statement,
                ingredient,
                _kind(ingredient) if ingredient else "",
                consent=self._consent_digest,
            )
            self._note_signature(signer, signed=signed)

    def check_signable(self, media_type: str) -> None:
        """See before the work that the output can be signed, where it has to be.

        Raises:
            Problem: `unsignable`.
        """
        if signer := self._trust.marker.signer:
            signer.admits(media_type)

    async def made(self, output: bytes | Path) -> None:
        """Write down that the swap was made; only then may it be answered.

        Raises:
            RetryLaterError: `audit_unavailable`.
        """
        audit = self._trust.audit
        if self._sender is None or not audit.enabled:
            return
        record = await self._run(self._record, AuditKind.SWAP, output)
        await audit.write(replace(record, watermark=self.marks.payload or ""))

    async def _refused(self, error: GateRefusedError) -> None:
        if self._sender is not None:
            record = await self._run(self._record, AuditKind.REFUSAL)
            await self._trust.account_for(record, error)

    @property
    def _request_id(self) -> str:
        return self._sender.request_id if self._sender else _OWN

    def _agreed(self, tier: str | None) -> ConsentStatement | None:
        people: dict[str, list[bytes]] = {}
        for name, photo in self._wish.sources:
            people.setdefault(name, []).append(photo)
        return self._trust.gate.consent(self._wish.consent, tier, people)

    def _record(self, kind: AuditKind, output: bytes | Path | None = None) -> AuditRecord:
        if self._sender is None:
            raise RuntimeError("work of the replica's own is not written down")
        digest = self._trust.audit.digest
        sources = [(name, digest(photo)) for name, photo in self._wish.sources]
        likes = [(name, digest(photo)) for name, photo in self._wish.likes]
        return AuditRecord(
            kind,
            self._sender,
            sources=tuple(each for _, each in sources),
            target=digest(self._wish.target),
            reference="".join(each for name, each in likes if not name),
            references=tuple(each for name, each in likes if name),
            people=tuple(
                AuditedPerson(
                    tuple(each for name, each in sources if name == person),
                    tuple(self._places.get(person, ())),
                    digest(said.text.encode()) if said else "",
                )
                for person, said in self._named()
            ),
            output="" if output is None else digest(output),
            models=self._trust.models(),
            policy=self._trust.policy,
            verdicts=by_check(self._verdicts),
            consent=digest(said.text.encode()) if (said := self._consent) and said.text else "",
        )

    def _named(self) -> list[tuple[str, ConsentStatement | None]]:
        """The people who have names, each with a statement of consent of their own."""
        own = self._consent.each if self._consent else {}
        names = dict.fromkeys(name for name, _ in self._wish.sources if name)
        return [(name, own.get(name)) for name in names]

    @property
    def _consent_digest(self) -> str | None:
        return self._consent.digest if self._consent else None

    def _note(self, verdict: GateVerdict | None) -> None:
        if verdict:
            self._verdicts.append(verdict)

    def _note_marks(self, found: WatermarkedPlaces, faces: Sequence[Face]) -> None:
        if not found.payload:
            return
        indices = tuple(face.index for face, has in zip(faces, found.faces, strict=False) if has)
        self.marks = replace(
            self.marks, payload=found.payload, faces=indices, picture=found.picture
        )

    def _note_signature(self, signer: C2paSigner, *, signed: bool) -> None:
        if signed:
            self.marks = replace(self.marks, signed_by=signer.certificate.subject)
        else:
            self.warnings = (QualityWarning.UNSIGNED,)


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        return kinds.media_type(file.read(kinds.HEAD))
