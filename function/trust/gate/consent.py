"""Who agrees to a swap: what a request says of it, in words or in a signed token."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from function.documented_enum import DocumentedEnum
from function.faces.select import NAME
from function.trust.gate.verdict import GateCheck, GateRefusedError, GateVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 500
"""Characters of a statement in words."""
LONGEST_TOKEN = 8192
_EACH = "each name in `sources` needs a token of its own: a=TOKEN b=TOKEN."
_OWN_TOKEN = re.compile(rf"({NAME})=(eyJ[^\s=]*)")


class ConsentKind(DocumentedEnum):
    """What a request has to say of consent; each includes those before it."""

    OFF = "off", "nothing"
    STATED = "stated", "who agrees to what, in words"
    SIGNED = "signed", "the same in a token with a good signature"

    def covers(self, wanted: ConsentKind) -> bool:
        """Whether it is as much as is wanted."""
        order = list(ConsentKind)
        return order.index(self) >= order.index(wanted)


@dataclass(frozen=True, slots=True)
class ConsentStatement:
    """Who agrees to what, as the caller says.

    Attributes:
        kind: in words, or signed.
        digest: SHA-256 of what was sent, hexadecimal.
        text: what was said; of a token what it is for.
        subject: of a token, whose consent it is.
        issuer: of a token, who has signed it.
        each: where several people are put in, and each has a token: what theirs says, by name.
    """

    kind: ConsentKind
    digest: str
    text: str
    subject: str = ""
    issuer: str = ""
    each: Mapping[str, ConsentStatement] = field(default_factory=dict)


class ConsentTokens(Protocol):
    """Reads signed statements."""

    def read(self, token: str, sources: Sequence[bytes]) -> ConsentStatement:
        """What a token says.

        Args:
            token: as it was sent.
            sources: the photos of the person to put in, as files.

        Raises:
            ValueError: it is not good; the text may be sent to the caller.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConsentPolicy:
    """What requests have to say.

    Attributes:
        wanted: of every request.
        tokens: reads signed statements; None where nobody's signature is known.
    """

    wanted: ConsentKind = ConsentKind.OFF
    tokens: ConsentTokens | None = None

    def check(
        self,
        given: str | None,
        tier: ConsentKind | None = None,
        people: Mapping[str, Sequence[bytes]] | None = None,
    ) -> ConsentStatement | None:
        """What a request says. Words are about everybody; a token is about one person.

        Args:
            given: its field `consent`.
            tier: what the caller's tier has to say, if that is more than every request has to.
            people: the people to put in by name, with their photos, as files.

        Returns:
            None where nothing is said and nothing has to be.

        Raises:
            GateRefusedError: `consent_required`.
        """
        wanted = self.wanted if tier is None or self.wanted.covers(tier) else tier
        text = (given or "").strip()
        if not text:
            if wanted is ConsentKind.OFF:
                return None
            raise _refused("The request does not say who agrees to the swap.", wanted)
        if not is_text(text):
            raise _refused("`consent` has half of a character (a surrogate).", wanted)
        statement = self._read(text, people or {}, wanted)
        if not statement.kind.covers(wanted):
            raise _refused("It takes a signed token to say who agrees to the swap.", wanted)
        return statement

    def _read(
        self, text: str, people: Mapping[str, Sequence[bytes]], wanted: ConsentKind
    ) -> ConsentStatement:
        if self.tokens and (own := _own_tokens(text)):
            return self._each(self.tokens, text, own, people, wanted)
        if self.tokens and _looks_signed(text):
            if len(people) > 1:
                raise _refused(f"A token is of one person; {_EACH}", wanted)
            photos = next(iter(people.values()), ())
            return _read_token(self.tokens, text, photos, wanted)
        if len(text) > LONGEST:
            raise _refused(f"`consent` has more than {LONGEST} characters.", wanted)
        return ConsentStatement(ConsentKind.STATED, digest_of(text), text)

    def _each(
        self,
        tokens: ConsentTokens,
        text: str,
        own: Mapping[str, str],
        people: Mapping[str, Sequence[bytes]],
        wanted: ConsentKind,
    ) -> ConsentStatement:
        """What the tokens of several people say; each of them needs one."""
        if own.keys() != people.keys():
            odd = min(own.keys() ^ people.keys())
            raise _refused(f"`{odd}` is in only one of `consent` and `sources`; {_EACH}", wanted)
        each = {
            name: _read_token(tokens, own[name], photos, wanted) for name, photos in people.items()
        }
        return ConsentStatement(ConsentKind.SIGNED, digest_of(text), "", each=each)


def is_text(text: str) -> bool:
    """Whether it can be written: JSON can name halves of characters, which cannot be."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def digest_of(text: str) -> str:
    """SHA-256 of a statement, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _own_tokens(text: str) -> dict[str, str]:
    """The tokens in `a=eyJ… b=eyJ…`, by name; none in any other text."""
    found = [_OWN_TOKEN.fullmatch(part) for part in text.split()]
    return {match[1]: match[2] for match in found if match} if all(found) else {}


def _read_token(
    tokens: ConsentTokens, token: str, photos: Sequence[bytes], wanted: ConsentKind
) -> ConsentStatement:
    try:
        return tokens.read(token, photos)
    except ValueError as error:
        raise _refused(str(error), wanted) from None


def _looks_signed(text: str) -> bool:
    return text.startswith("eyJ") and text.count(".") == 2 and len(text.split()) == 1


def _refused(detail: str, wanted: ConsentKind) -> GateRefusedError:
    verdict = GateVerdict(GateCheck.CONSENT, allowed=False, note=str(wanted))
    return GateRefusedError("consent_required", detail, verdict, field="consent")
