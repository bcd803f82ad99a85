"""What earlier versions of Ember have left on Revisions, and that it has to stay there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.cluster.target import HOLD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepalive.cluster.target import Target


def notes(targets: Iterable[Target], noted: tuple[str, ...]) -> dict[str, str]:
    """Notes by the name of the target: about an old hold each time, about the rest once."""
    made = {}
    for each in targets:
        if HOLD in each.left:
            made[each.name] = (
                f"{HOLD} on the Revision {each.name} stops nothing: put it on the Service. Leave"
                " the Revision as it is: removing it there may replace all its pods."
            )
        elif each.left and each.name not in noted:
            made[each.name] = (
                f"An earlier version of Ember has left {' and '.join(each.left)} on the Revision"
                f" {each.name}. Leave them: removing them may replace all its pods."
            )
    return made
