"""What a deployment has to know of the cluster before it applies manifests; nothing is changed.

Applied as they are, manifests would say nothing where a pin keeps their new revision from all
traffic; and with their own `initial-scale` one replica would take over from however many serve.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.cluster.autoscaling import INITIAL_SCALE, started_with
from keepalive.cluster.kubectl import ran
from keepalive.cluster.pin import UNPIN, complaint, pinned
from keepalive.cluster.target import annotations_of
from keepalive.failure import Exit, Failure
from keepalive.rollout import replicas, traffic

if TYPE_CHECKING:
    from collections.abc import Iterable

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """What is to be deployed.

    Attributes:
        service: the name of the Knative Service.
        namespace: where.
        folder: with the kustomization.
        kubectl: the operator's own.
        unpin: whether the new revision is to get traffic that is pinned, once it is ready.
        replicas: that it starts with; None for as many as serve.
    """

    service: str
    namespace: str
    folder: str
    kubectl: str = "kubectl"
    unpin: bool = False
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """What came of it.

    Attributes:
        initial_scale: that the template has to have in place of its own; None for its own.
        notice: in words, what is worth knowing.
        unpins: whether the traffic is to be unpinned afterwards, which the Service has to remember:
            the deployment may be cut off before it has done that.
    """

    initial_scale: str | None = None
    notice: str | None = None
    unpins: bool = False


def inspect(asked: PreflightRequest) -> PreflightResult:
    """Ask the cluster.

    Raises:
        Failure: it does not answer, or a deployment would not do what it seems to.
    """
    if (live := _get(asked, "services.serving.knative.dev", asked.service)) is None:
        return PreflightResult()  # nobody to take over from
    revisions = [
        revision
        for name in traffic.percents(live)
        if (revision := _get(asked, "revisions.serving.knative.dev", name)) is not None
    ]
    return decide(asked, live, _applied(asked), revisions)


def decide(
    asked: PreflightRequest,
    live: dict[str, Any],
    applied: dict[str, Any] | None,
    revisions: Iterable[dict[str, Any]],
) -> PreflightResult:
    """What has to be done otherwise than the manifests say.

    Raises:
        Failure: it would not do what it seems to.
    """
    if made := traffic.progress(live):
        raise Failure(
            f"A rollout of {made.image} is under way: finish it with `ember rollout --image"
            f" {made.image}`, or end it with `ember rollout --abort`.",
            Exit.CONFIG,
        )
    wanted = applied or live
    notice = _pin(asked, wanted)
    unpins = asked.unpin and bool(pinned(wanted))
    before, after = traffic.template(live), traffic.template(wanted)
    kept = INITIAL_SCALE in before or INITIAL_SCALE not in after
    if kept and applied is not None and _meant(live) == _meant(applied):
        if unpins and UNPIN not in annotations_of(live):
            _is_latest(live)
        return PreflightResult(
            before.get(INITIAL_SCALE) if before != after else None, notice, unpins
        )
    if not started_with(after):
        return PreflightResult(None, notice, unpins)
    count = replicas.bounded(asked.replicas or replicas.needed(revisions, after), after)
    if str(count) == after.get(INITIAL_SCALE):
        return PreflightResult(None, notice, unpins)
    starts = f"The new revision starts with {count} replicas; REPLICAS=… says otherwise."
    return PreflightResult(str(count), " ".join(filter(None, (notice, starts))), unpins)


def patch(service: str, found: PreflightResult) -> str | None:
    """An item for the `patches` of a kustomization: what is to be otherwise; None for nothing."""
    metadata: dict[str, Any] = {"name": service}
    changed = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": metadata}
    if found.unpins:
        metadata["annotations"] = {UNPIN: "true"}
    if found.initial_scale is not None:
        annotations = {INITIAL_SCALE: found.initial_scale}
        changed["spec"] = {"template": {"metadata": {"annotations": annotations}}}
    elif not found.unpins:
        return None
    target = {"group": "serving.knative.dev", "kind": "Service", "name": service}
    return f"- {json.dumps({'target': target, 'patch': json.dumps(changed)})}"


def _pin(asked: PreflightRequest, wanted: dict[str, Any]) -> str | None:
    """What is to be said of a pin, if it is no reason to stop."""
    if not (names := pinned(wanted)):
        return None
    if json.loads(annotations_of(wanted).get(_APPLIED, "{}")).get("spec", {}).get("traffic"):
        if asked.unpin:
            raise Failure(
                f"The manifests themselves give the traffic to {' and '.join(names)} by name:"
                " change them in place of UNPIN=1.",
                Exit.CONFIG,
            )
        return f"As the manifests say, {' and '.join(names)} keeps its traffic by name."
    if not asked.unpin:
        raise Failure(
            f"{complaint(wanted)} `make deploy UNPIN=1` deploys all the same, and the new revision"
            " gets the traffic when it is ready.",
            Exit.CONFIG,
        )
    return f"{' and '.join(names)} serves until the new revision is ready, and is no longer pinned."


def _is_latest(live: dict[str, Any]) -> None:
    """See that what would get the traffic has it.

    Raises:
        Failure: it has not.
    """
    serving, latest = traffic.sole(live), traffic.latest(live)
    if serving != latest:
        image = traffic.image(live["spec"]["template"])
        raise Failure(
            f"The manifests are those of {latest}, which has no traffic: {serving} has it. Prove"
            f" it with `ember rollout --image {image}`, which leaves nothing pinned.",
            Exit.CONFIG,
        )


def _meant(service: dict[str, Any]) -> dict[str, Any]:
    """The template without what a deployment or a rollout carries over."""
    template = service["spec"]["template"]
    metadata = template.get("metadata", {})
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name != INITIAL_SCALE
    }
    return {**template, "metadata": {**metadata, "annotations": annotations}}


def _get(asked: PreflightRequest, resource: str, name: str) -> dict[str, Any] | None:
    words = ("get", resource, name, "-n", asked.namespace, "--ignore-not-found", "-o", "json")
    text = ran(asked.kubectl, *words)
    return dict(json.loads(text)) if text.strip() else None


def _applied(asked: PreflightRequest) -> dict[str, Any] | None:
    """The Service as the cluster says that it would be.

    It does not where it refuses the manifests, as applying them will tell, or cannot try their pod,
    as its account comes with them: then the template is another one.
    """
    try:
        text = ran(asked.kubectl, "apply", "-k", asked.folder, "--dry-run=server", "-o", "json")
    except Failure:
        return None
    found = json.loads(text)
    for one in found.get("items", [found]):
        version = str(one.get("apiVersion"))
        if version.startswith("serving.knative.dev/") and (
            (one.get("kind"), one["metadata"]["name"]) == ("Service", asked.service)
        ):
            return dict(one)
    return None
