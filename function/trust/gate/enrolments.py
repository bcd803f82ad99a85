"""What the list of consents has of one caller, as far as it can be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.trust.gate import kept_list

if TYPE_CHECKING:
    from function.trust.gate.identity_list import IdentityList


@dataclass(frozen=True, slots=True)
class Enrolments:
    """The entries of a list whose label is a caller's subject.

    Attributes:
        uri: where the list is.
        name: what is counted.
    """

    uri: str
    name: str = "enrolments"

    async def erase(self, subject: str) -> list[str]:
        """Take a caller off the list; the ids of the entries.

        Raises:
            IdentityListError: what is there makes no sense.
            ObjectError: it cannot be read or written.
        """
        store = kept_list.store_of(self.uri)
        try:
            people, _ = await kept_list.read(self.uri, store)
            if found := _of(people, subject):
                await kept_list.change(self.uri, store, lambda people: _without(people, subject))
        finally:
            await store.close()
        return found


def _of(people: IdentityList, subject: str) -> list[str]:
    return [person.id for person in people.people if person.label == subject]


def _without(people: IdentityList, subject: str) -> IdentityList:
    for id_ in _of(people, subject):
        people = people.removed(id_)
    return people
