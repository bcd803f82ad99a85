"""Whether the Job that builds plans lands where replicas land, as a plan is for one kind of GPU.

`knative/components/engine-build-job` copies all of this from the Service. What changes one of the
two later, as the patches of an overlay do, makes them differ again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keepalive.doctor.view import get, many, revision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepalive.doctor.view import Thing

_NAME = "ember-engine-build"
_IMAGE = "ember-engine-builder"
_OF_PODS = (
    *("nodeSelector", "affinity", "tolerations", "runtimeClassName", "resourceClaims"),
    *("priorityClassName", "schedulerName", "serviceAccountName", "imagePullSecrets"),
)
_OF_CONTAINERS = ("env", "envFrom")
_OF_ANY_POD = {"cpu", "memory", "ephemeral-storage"}


def examined(
    documents: Iterable[Thing], services: Iterable[Thing]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each Job that builds plans, and what is wrong with it, in words.

    Args:
        documents: objects; others are passed over.
        services: the Knative Services whose replicas run the plans, of a right shape.
    """
    of = {get(one, "metadata").get("namespace"): one for one in services}
    for job in documents:
        if job.get("kind") != "Job" or _name(job) != _NAME:
            continue
        service = of.get(get(job, "metadata").get("namespace"))
        wrong = [] if service is None else list(_displaced(job, service))
        yield f"Job {get(job, 'metadata').get('name')}", (*_unfinished(job), *wrong)


def _unfinished(job: Thing) -> Iterator[str]:
    if not re.fullmatch(f"{_NAME}-[a-z0-9]{{10}}", str(get(job, "metadata").get("name"))):
        yield (
            "its name has no hash of its content, so a change of it would be refused; take it from"
            " knative/components/engine-build-job"
        )
    if _first(get(job, "spec", "template", "spec")).get("image") == _IMAGE:
        yield f"nothing says where its image is; name {_IMAGE} under `images` of the overlay"


def _displaced(job: Thing, service: Thing) -> Iterator[str]:
    its, theirs = get(job, "spec", "template", "spec"), revision(service)
    pairs = [(name, its.get(name), theirs.get(name)) for name in _OF_PODS]
    one, other = _first(its), _first(theirs)
    pairs += [(name, one.get(name), other.get(name)) for name in _OF_CONTAINERS]
    pairs.append(("resources", _devices(one), _devices(other)))
    for name, found, wanted in pairs:
        if (found or None) != (wanted or None):
            yield (
                f"{name}: {found or 'nothing'}, where replicas have {wanted or 'nothing'}: put"
                " engine-build-job last, and what patches the Service into a component before it"
            )


def _name(job: Thing) -> object:
    return get(job, "metadata", "labels").get("app.kubernetes.io/name")


def _first(pod: Thing) -> Thing:
    """The container that computes."""
    found = many(pod, "containers")
    return found[0] if found and isinstance(found[0], dict) else {}


def _devices(container: Thing) -> Thing:
    """What a container asks for beside what every pod has."""
    limits = get(container, "resources", "limits")
    found = {name: count for name, count in limits.items() if name not in _OF_ANY_POD}
    claims = many(get(container, "resources"), "claims")
    return {**found, "claims": claims} if claims else found
