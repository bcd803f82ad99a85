"""What a rollout does to a Knative Service, as pure changes of the object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from keepalive.cluster.target import annotations_of
from keepalive.failure import Exit, Failure

MARK = "ember.dev/rollout"
INITIAL_SCALE = "autoscaling.knative.dev/initial-scale"
WHOLE = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rollout is; it is kept on the Service, so that anybody can go on with it.

    Attributes:
        image: the new one.
        old: the revision that had the traffic.
        tag: under which the new one has an address of its own.
        step: how many of the steps it has passed.
    """

    image: str
    old: str
    tag: str
    step: int = 0

    def passed(self) -> Progress:
        """One step further."""
        return replace(self, step=self.step + 1)


def progress(service: dict[str, Any]) -> Progress | None:
    """The rollout that a Service is in."""
    if not (text := annotations_of(service).get(MARK)):
        return None
    try:
        return Progress(**json.loads(text))
    except (ValueError, TypeError):
        raise Failure(
            f"The annotation {MARK} of the Service cannot be read: {text!r}. Remove it, and see"
            " that spec.traffic is as you want it.",
            Exit.CONFIG,
        ) from None


def begun(service: dict[str, Any], made: Progress, *, pod_first: bool = True) -> dict[str, Any]:
    """The patch that makes the new revision, and leaves all traffic with the old one.

    Args:
        service: as it is.
        made: the rollout.
        pod_first: whether a replica has to be ready before the revision is; without, and where the
            cluster allows it, the revision gets the traffic at once and the activator holds it.
    """
    template = service["spec"]["template"]
    spec = dict(template["spec"])
    before = spec["containers"][0]["image"]
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [
                {**one, "image": made.image} if one["image"] == before else one
                for one in spec[kind]
            ]
    changed: dict[str, Any] = {"spec": {kind: spec[kind] for kind in spec if "ontainers" in kind}}
    traffic = split(made, 0)
    if not pod_first:
        changed["metadata"] = {"annotations": {INITIAL_SCALE: "0"}}
        traffic = final()
    return {
        "metadata": {"annotations": {MARK: json.dumps(asdict(made))}},
        "spec": {"template": changed, "traffic": traffic},
    }


def shifted(made: Progress, percent: int) -> dict[str, Any]:
    """The patch that gives the new revision a part of the traffic."""
    return {
        "metadata": {"annotations": {MARK: json.dumps(asdict(made))}},
        "spec": {"traffic": split(made, percent)},
    }


def ended() -> dict[str, Any]:
    """The patch after which all is as after any other update."""
    return {"metadata": {"annotations": {MARK: None}}, "spec": {"traffic": final()}}


def undone(made: Progress) -> dict[str, Any]:
    """The patch that leaves all traffic with the old revision."""
    return {
        "metadata": {"annotations": {MARK: None}},
        "spec": {"traffic": [{"revisionName": made.old, "percent": WHOLE}]},
    }


def split(made: Progress, percent: int) -> list[dict[str, Any]]:
    """Traffic between the old revision and the latest one."""
    return [
        {"revisionName": made.old, "percent": WHOLE - percent},
        {"latestRevision": True, "percent": percent, "tag": made.tag},
    ]


def final() -> list[dict[str, Any]]:
    """Traffic of a Service that nobody rolls out."""
    return [{"latestRevision": True, "percent": WHOLE}]


def sole(service: dict[str, Any]) -> str:
    """The revision that has all of the traffic.

    Raises:
        Failure: there is none.
    """
    status = service.get("status", {})
    parts = [one for one in status.get("traffic", []) if one.get("percent")]
    names = {one.get("revisionName") for one in parts}
    if len(names) != 1:
        told = ", ".join(f"{one.get('revisionName')} {one['percent']} %" for one in parts)
        raise Failure(
            f"The traffic is with {told or 'no revision yet'}: give one revision all of it before"
            " a rollout.",
            Exit.CONFIG,
        )
    return str(names.pop())


def condition(thing: dict[str, Any]) -> tuple[str, str]:
    """Whether it is ready ("True", "False", "Unknown"), and why not."""
    for one in thing.get("status", {}).get("conditions", []):
        if one["type"] == "Ready":
            return str(one["status"]), ": ".join(filter(None, map(one.get, ("reason", "message"))))
    return "Unknown", ""
