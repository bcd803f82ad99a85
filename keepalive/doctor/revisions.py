"""Annotations that somebody has written onto a Revision, which restarts its pods.

Knative copies all annotations of a Revision into the template of its pods, but for the autoscaler's
and four of its own (pkg/reconciler/revision/resources/meta.go): whoever adds, changes or takes away
another one makes the Deployment replace every pod. What a Revision is born with, from the Service's
template, is there for good and does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.cluster.autoscaling import PREFIX
from keepalive.doctor.view import Thing, get, many, template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FREE = {
    f"serving.knative.dev/{name}"
    for name in ("lastPinned", "no-gc", "routingStateModified", "routes")
}
_OURS = "ember.dev/"
_COPIED = (
    "Knative copies it into the pods' template, so each change of it replaces every pod. On a"
    " Revision change autoscaling.knative.dev/* only; do not take this away by hand, the next"
    " revision comes without it"
)


def written(revision: Thing) -> Iterator[str]:
    """Annotations of a Revision that were certainly written onto it after its birth, in words."""
    born = _owners(revision)
    for name in _copied(revision):
        by = [manager for manager, names in _annotating(revision).items() if name in names]
        if by and not born & set(by):
            yield f"metadata.annotations: {name}, by {' and '.join(by)}: {_COPIED}"
        elif not by and name.startswith(_OURS):
            yield f"metadata.annotations: {name}: {_COPIED}"


def perhaps_written(revision: Thing, services: Mapping[str, Thing]) -> Iterator[str]:
    """Those of which it cannot be known, as nobody says who wrote them."""
    if _annotating(revision):
        return
    owner = get(revision, "metadata", "labels").get("serving.knative.dev/service", "")
    meant = get(template(services.get(owner, {})), "metadata", "annotations")
    for name in _copied(revision):
        if not name.startswith(_OURS) and "knative.dev/" not in name and name not in meant:
            yield f"metadata.annotations: {name}, if not born with it: {_COPIED}"


def _copied(revision: Thing) -> list[str]:
    """The annotations that Knative copies."""
    given = get(revision, "metadata", "annotations")
    return [name for name in given if not name.startswith(PREFIX) and name not in _FREE]


def _owners(revision: Thing) -> set[str]:
    """Who has written the specification, which nobody can change: whoever made the Revision."""
    fields = many(get(revision, "metadata"), "managedFields")
    return {str(one.get("manager")) for one in fields if "f:spec" in get(one, "fieldsV1")}


def _annotating(revision: Thing) -> dict[str, set[str]]:
    """The annotations that each manager has written, by its name."""
    found: dict[str, set[str]] = {}
    for one in many(get(revision, "metadata"), "managedFields"):
        names = get(one, "fieldsV1", "f:metadata", "f:annotations")
        keys = {key.removeprefix("f:") for key in names if key.startswith("f:")}
        found.setdefault(str(one.get("manager")), set()).update(keys)
    return {manager: keys for manager, keys in found.items() if keys}
