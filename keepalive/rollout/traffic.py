"""What a rollout does to a Knative Service, as pure changes of the object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from keepalive.cluster.autoscaling import INITIAL_SCALE, MIN_SCALE
from keepalive.cluster.pin import ROLLOUT, UNPIN
from keepalive.cluster.target import annotations_of
from keepalive.failure import Exit, Failure
from keepalive.rollout.replicas import WHOLE

MARK = ROLLOUT
RETRY = "ember.dev/rolled-out-after"


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """How far a rollout is; it is kept on the Service, so that anybody can go on with it.

    Attributes:
        image: the new one.
        old: the revision that had the traffic.
        tag: under which the new one has an address of its own.
        step: how many of the steps it has passed.
        before: the latest revision there was when it began.
        new: the revision that it has made; empty until Knative has given it a name.
        replicas: how many there were to take over from; 0 to start with none.
        floor: the `min-scale` that the revision with the traffic has, before and after.
        undoing: whether the old one has been given the traffic back, and its floor has not.
    """

    image: str
    old: str
    tag: str
    step: int = 0
    before: str = ""
    new: str = ""
    replicas: int = 1
    floor: int = 0
    undoing: bool = False

    def passed(self) -> RolloutProgress:
        """One step further."""
        return replace(self, step=self.step + 1)

    def lasting(self, floor: int, own: int) -> int:
        """The floor to leave behind: its own, unless somebody has raised it further meanwhile."""
        return floor if floor > self.replicas else own


def progress(service: dict[str, Any]) -> RolloutProgress | None:
    """The rollout that a Service is in."""
    if not (text := annotations_of(service).get(MARK)):
        return None
    try:
        return RolloutProgress(**json.loads(text))
    except (ValueError, TypeError):
        raise Failure(
            f"The annotation {MARK} of the Service cannot be read: {text!r}. Remove it, and see"
            " that spec.traffic is as you want it.",
            Exit.CONFIG,
        ) from None


def template(service: dict[str, Any]) -> dict[str, str]:
    """The annotations that its next revision gets."""
    return service["spec"]["template"].get("metadata", {}).get("annotations") or {}


def image(thing: dict[str, Any]) -> str:
    """The image of a revision's main container."""
    return str(thing["spec"]["containers"][0]["image"])


def begun(service: dict[str, Any], made: RolloutProgress) -> dict[str, Any]:
    """The patch that makes the new revision, and leaves all traffic with the old one.

    It is another revision even where the template has the image already: one that was undone.
    """
    spec = dict(service["spec"]["template"]["spec"])
    before = image(service["spec"]["template"])
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [
                {**one, "image": made.image} if one["image"] == before else one
                for one in spec[kind]
            ]
    annotations = {INITIAL_SCALE: str(made.replicas)}
    if not made.replicas:  # it would wait for the larger of the two
        annotations[MIN_SCALE] = "0"
    if before == made.image:
        annotations[RETRY] = made.before
    changed = {
        # A name that kn has given the revision before is refused for another one.
        "metadata": {"annotations": annotations, "name": None},
        "spec": {kind: spec[kind] for kind in spec if "ontainers" in kind},
    }
    parts = [{"revisionName": made.old, "percent": WHOLE}]
    if made.replicas:
        parts.append({"latestRevision": True, "percent": 0, "tag": made.tag})
    patch = _patch(service, made, parts, made.tag)
    patch["spec"]["template"] = changed
    return patch


def marked(made: RolloutProgress | None) -> dict[str, Any]:
    """The patch that only remembers how far it is, or that there is none."""
    return {"metadata": {"annotations": {MARK: json.dumps(asdict(made)) if made else None}}}


def shifted(service: dict[str, Any], made: RolloutProgress, percent: int) -> dict[str, Any]:
    """The patch that gives the new revision a part of the traffic, by its name."""
    parts = [
        {"revisionName": made.old, "percent": WHOLE - percent},
        {"revisionName": made.new, "percent": percent, "tag": made.tag},
    ]
    return _patch(service, made, parts, made.tag)


def ended(service: dict[str, Any], made: RolloutProgress) -> dict[str, Any]:
    """The patch after which all is as after any other update.

    Where somebody has changed the template meanwhile, the new revision keeps the traffic by its
    name, as nobody has proven the latest one.
    """
    follows = [{"latestRevision": True, "percent": WHOLE}]
    named = [{"revisionName": made.new, "percent": WHOLE}]
    sole_latest = reconciled(service) and latest(service) == made.new
    return _patch(service, None, follows if sole_latest else named, made.tag)


def undone(service: dict[str, Any], made: RolloutProgress) -> dict[str, Any]:
    """The patch that leaves all traffic with the old revision; its floor is to follow."""
    parts = [{"revisionName": made.old, "percent": WHOLE}]
    return _patch(service, replace(made, undoing=True), parts, made.tag)


def unpinned(service: dict[str, Any]) -> dict[str, Any]:
    """The patch after which the latest revision has the traffic again."""
    return _patch(service, None, [{"latestRevision": True, "percent": WHOLE}], "")


def _patch(
    service: dict[str, Any], made: RolloutProgress | None, parts: list[dict[str, Any]], tag: str
) -> dict[str, Any]:
    """Other traffic, and how far it is; what others have under tags without traffic stays."""
    others = [
        part
        for part in service["spec"].get("traffic") or []
        if part.get("tag") not in {None, tag} and not part.get("percent")
    ]
    mark = json.dumps(asdict(made)) if made else None
    return {
        "metadata": {"annotations": {MARK: mark, UNPIN: None}},
        "spec": {"traffic": parts + others},
    }


def latest(service: dict[str, Any]) -> str:
    """The revision that was made last, ready or not, once the status is `reconciled`."""
    return str(service.get("status", {}).get("latestCreatedRevisionName", ""))


def reconciled(service: dict[str, Any]) -> bool:
    """Whether the status is that of the last change.

    Until then it names the revisions before. That the generation has been observed is not enough:
    the Service's controller may have come by before those of its Configuration and its Route, and
    says so with the reason OutOfDate.
    """
    status = service.get("status", {})
    observed = status.get("observedGeneration", 0) >= service["metadata"].get("generation", 0)
    reasons = {one.get("reason") for one in status.get("conditions", [])}
    return observed and "OutOfDate" not in reasons


def percents(service: dict[str, Any]) -> dict[str, int]:
    """How the traffic is split, by revision; those without any are left out."""
    found: dict[str, int] = {}
    for part in service.get("status", {}).get("traffic", []):
        if part.get("percent"):
            name = str(part.get("revisionName"))
            found[name] = found.get(name, 0) + part["percent"]
    return found


def sole(service: dict[str, Any]) -> str:
    """The revision that has all of the traffic.

    Raises:
        Failure: there is none.
    """
    found = percents(service)
    if len(found) != 1:
        told = ", ".join(f"{name} {percent} %" for name, percent in found.items())
        raise Failure(
            f"The traffic is with {told or 'no revision yet'}: give one revision all of it before"
            " a rollout.",
            Exit.CONFIG,
        )
    return next(iter(found))


def address(service: dict[str, Any], made: RolloutProgress) -> str | None:
    """Where the new revision, and no other, answers; None while it has no address."""
    status: dict[str, Any] = service.get("status", {})
    if not made.replicas:
        found = [status] if percents(service) == {made.new: WHOLE} else []
    else:
        asked = (made.tag, made.new)
        parts = status.get("traffic", [])
        found = [part for part in parts if (part.get("tag"), part.get("revisionName")) == asked]
    return next((str(one["url"]) for one in found if "url" in one), None)
