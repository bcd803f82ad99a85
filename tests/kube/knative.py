"""Knative Serving as far as others notice it: what its webhook refuses, what its controllers do.

A Service makes a Revision whenever its template changes; a Revision's specification never changes;
its min-scale may, and from Knative 1.21 on goes to its PodAutoscaler, whose own annotations do not
last. Until 1.20 it is the other way round: the pods of a changed Revision are replaced.

Facts that it keeps, each seen on a real control plane:

- After a change of the Service over HTTP, `status` is the old one for a while; then it has the new
  `observedGeneration`, but names the Revision before (`OutOfDate`: the Configuration has not been
  looked at); then it is right. Time is counted in reads of the Service: `late` of them.
- A template may name its revision, as some versions of kn do; then another one needs another name.
- `spec.traffic` that names a Revision stays; a changed template moves nothing. Naming a Revision
  that is not ready leaves the traffic where it is.
- A Revision starts with `initial-scale` replicas, and is ready when it has them; with more than its
  `max-scale`, never. Then it has what its floor and its share of the `demand` call for.
- It takes the traffic with as many pods as it has then, however many have served before. A floor
  that is raised until then is waited for, as if it had been in the template.
- Annotations and labels of a Revision, but for those of autoscaling and those that Knative keeps
  for itself (`_NOT_COPIED`), are copied into the template of its pods, and a changed template
  replaces them.

And facts that were read in its source:

- `initial-scale: 0` makes it ready without a pod only if `min-scale` is 0 as well: it waits for the
  larger of the two (kpa.go, activeThreshold).
- While there is no pod and there is no room for one, a Revision is not ready for the reason
  `Unschedulable` (reconcile_resources.go), and becomes ready when there is.
"""

from __future__ import annotations

import copy
import math
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.kube.objects import Key, Kind, Objects, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "serving.knative.dev"
SCALING = "autoscaling.knative.dev"
AUTOSCALERS = "autoscaling.internal.knative.dev"
MIN_SCALE, MAX_SCALE = f"{SCALING}/min-scale", f"{SCALING}/max-scale"
INITIAL_SCALE = f"{SCALING}/initial-scale"
ACTIVATION_SCALE = f"{SCALING}/activation-scale"
_COUNT = re.compile(r"\d{1,9}")
_NOT_COPIED = {
    f"{GROUP}/{name}"
    for name in ("lastPinned", "no-gc", "routes", "routingState", "routingStateModified", "route")
}
"""Annotations and labels of a Revision that stay out of its pods, beside those of autoscaling."""


class Knative:
    """Knative in a cluster.

    Args:
        objects: of the cluster; `install` gives it the kinds.
        version: of Knative.

    Attributes:
        rolled: revisions whose pods were replaced, in order.
        moved: revisions that got the most traffic, in order, each with the pods that it had then.
        starting: whether revisions wait for `become_ready` or `start`, and floors for
            `pass_a_window`.
        late: after how many reads over HTTP a change over HTTP has come through.
        demand: how many replicas all of the traffic calls for.
        room: for how many pods there is room in all; None for any.
        zero_initial_scale: whether the cluster allows a revision to start without a pod.
        address: of every Service, and of everything that has a tag.
    """

    def __init__(self, objects: Objects, version: str) -> None:
        self._objects = objects
        self._keeps_pods = tuple(map(int, version.split(".")[:2])) >= (1, 21)
        self.rolled: list[str] = []
        self.moved: list[tuple[str, int]] = []
        self.starting = False
        self.late = 2
        self.demand = 0
        self.room: int | None = None
        self.zero_initial_scale = False
        self._prompt = True
        self._unseen: dict[Key, int] = {}
        self._templates: dict[Key, dict[str, Any]] = {}
        self._made: dict[Key, int] = {}
        self.address = "http://ember.ember.example.com"
        objects.kinds |= {
            (GROUP, "services"): Kind("v1", "Service", self._admit_service, self._settle_service),
            (GROUP, "revisions"): Kind(
                "v1", "Revision", self._admit_revision, self._settle_revision
            ),
            (AUTOSCALERS, "podautoscalers"): Kind(
                "v1alpha1", "PodAutoscaler", None, self._settle_autoscaler
            ),
            ("apps", "deployments"): Kind("v1", "Deployment"),
        }

    @contextmanager
    def from_outside(self) -> Iterator[None]:
        """What is changed meanwhile is noticed late, as over HTTP."""
        with self._objects.lock:
            self._prompt = False
            try:
                yield
            finally:
                self._prompt = True

    def read(self, key: Key) -> None:
        """Somebody has read a Service: the controllers get on with what they have not seen."""
        with self._objects.lock:
            if key not in self._unseen:
                return
            self._unseen[key] -= 1
            if self._unseen[key] <= 0:
                self._reconcile(key)
            elif self._unseen[key] == 1:
                self._observe(key)

    def settle(self) -> None:
        """All changes have come through."""
        with self._objects.lock:
            for key in list(self._unseen):
                self._reconcile(key)

    def become_ready(self, namespace: str, name: str, *, failed: str | None = None) -> None:
        """A revision has as many replicas as it has to start with, or never will."""
        with self._objects.lock:
            self.settle()
            key = Key(GROUP, "revisions", namespace, name)
            if failed is None:
                first = _first(self._objects.get(key))
                if first > self._room(key):
                    told = {"type": "Ready", "status": "False", "reason": "Unschedulable"}
                    told["message"] = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
                    self._change_status(key, conditions=[told], actualReplicas=0)
                elif first <= _most(self._objects.get(key)):
                    self.start(namespace, name, first)
                return
            told = {"type": "Ready", "status": "False", "reason": "ContainerMissing"}
            self._change_status(key, conditions=[{**told, "message": failed}], actualReplicas=0)

    def start(self, namespace: str, name: str, pods: int) -> None:
        """A revision has that many pods; the first time that they are enough, it becomes ready."""
        with self._objects.lock:
            self.settle()
            key = Key(GROUP, "revisions", namespace, name)
            changed: dict[str, Any] = {"actualReplicas": pods}
            if pods >= _first(self._objects.get(key)):
                changed["conditions"] = [{"type": "Ready", "status": "True"}]
            self._change_status(key, **changed)

    def _change_status(self, key: Key, **changed: Any) -> None:
        revision = self._objects.get(key)
        revision["status"] = {**revision.get("status", {}), **changed}
        self._objects.keep(key, revision)
        service = revision["metadata"]["labels"][f"{GROUP}/service"]
        self._route(Key(GROUP, "services", key.namespace, service))

    def _room(self, besides: Key) -> float:
        """For how many pods of a revision there is room beside those of all others."""
        if self.room is None:
            return math.inf
        taken = (
            revision.get("status", {}).get("actualReplicas", 0)
            for key, revision in self._objects.kept.items()
            if key[:2] == (GROUP, "revisions") and key != besides
        )
        return self.room - sum(taken)

    def pass_a_window(self, namespace: str = "ember", service: str = "ember") -> None:
        """The autoscaler's window passes: what neither floor nor traffic calls for goes."""
        with self._objects.lock:
            self.settle()
            found = self._objects.kept[Key(GROUP, "services", namespace, service)]
            for key in [key for key in self._objects.kept if key[:2] == (GROUP, "revisions")]:
                if not self._ready(namespace, key.name):
                    continue
                parts = [
                    one
                    for one in found["status"].get("traffic", [])
                    if one["revisionName"] == key.name
                ]
                share = self.demand * sum(one.get("percent") or 0 for one in parts) / 100
                revision = copy.deepcopy(self._objects.kept[key])
                wanted = max(_least(revision), math.ceil(share)) if parts else 0
                wanted = min(wanted, _most(revision), self._room(key))
                revision["status"] |= {"actualReplicas": wanted, "desiredReplicas": wanted}
                self._objects.keep(key, revision)

    def _admit_service(self, key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        annotations = new["metadata"].get("annotations", {})
        if wrong := [name for name in annotations if name.startswith(SCALING)]:
            _refuse(f"autoscaling annotations must be put under spec.template: {wrong[0]}")
        template = new["spec"]["template"].get("metadata", {}).get("annotations", {})
        _check(template)
        if template.get(INITIAL_SCALE) == "0" and not self.zero_initial_scale:
            _refuse(f"invalid value: 0: {INITIAL_SCALE}=0 not allowed by cluster")
        before, after = (old or new)["spec"]["template"], new["spec"]["template"]
        if before != after and _name(before) and _name(before) == _name(after):
            _refuse("Saw the following changes without a name change (-old +new): spec")
        percents = [each.get("percent") or 0 for each in new["spec"].get("traffic", [])]
        if percents and sum(percents) != 100:
            _refuse(f"Traffic targets sum to {sum(percents)}, want 100: spec.traffic")

    def _admit_revision(self, key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        _check(new["metadata"].get("annotations", {}))
        if old is not None and old["spec"] != new["spec"]:
            _refuse("Immutable fields changed (-old +new): spec")

    def _settle_service(self, key: Key, old: dict[str, Any] | None) -> None:
        if self._prompt or old is None or not self.late:
            self._reconcile(key)
        else:
            self._unseen[key] = self.late

    def _observe(self, key: Key) -> None:
        """The Service's controller has seen it; the Configuration's has not."""
        service = copy.deepcopy(self._objects.kept[key])
        service["status"]["observedGeneration"] = service["metadata"]["generation"]
        late = {"status": "Unknown", "reason": "OutOfDate"}
        service["status"]["conditions"] = [
            {"type": kind, **late} for kind in ("Ready", "ConfigurationsReady", "RoutesReady")
        ]
        self._objects.keep(key, service)

    def _reconcile(self, key: Key) -> None:
        self._unseen.pop(key, None)
        service = self._objects.kept[key]
        template = service["spec"]["template"]
        if self._templates.get(key) != template:
            self._templates[key] = copy.deepcopy(template)
            self._made[key] = self._made.get(key, 0) + 1
            name = _name(template) or f"{key.name}-{self._made[key]:05}"
            service.setdefault("status", {})["latestCreatedRevisionName"] = name
            metadata = copy.deepcopy(template.get("metadata", {}))
            metadata.setdefault("labels", {})[f"{GROUP}/service"] = key.name
            revision = {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
            revision["spec"].setdefault("containerConcurrency", 0)
            with self._objects.changed_by("controller"):
                self._objects.create(Key(GROUP, "revisions", key.namespace, name), revision)
            if not self.starting:
                self.become_ready(key.namespace, name)
        self._route(key)

    def _route(self, key: Key) -> None:
        service = copy.deepcopy(self._objects.kept[key])
        status = service.setdefault("status", {})
        status["observedGeneration"] = service["metadata"]["generation"]
        latest = status["latestCreatedRevisionName"]
        if self._ready(key.namespace, latest):
            status["latestReadyRevisionName"] = latest
        wanted = service["spec"].get("traffic") or [{"latestRevision": True, "percent": 100}]
        ready = status.get("latestReadyRevisionName")
        named = [each.get("revisionName", ready) for each in wanted]
        routed = all(name and self._ready(key.namespace, name) for name in named)
        if routed:
            before = _main(status.get("traffic", []))
            status["url"] = self.address
            status["traffic"] = [
                {**each, "revisionName": name} | ({"url": self.address} if "tag" in each else {})
                for each, name in zip(wanted, named, strict=True)
            ]
            if (after := _main(status["traffic"])) != before:
                revision = self._objects.kept[Key(GROUP, "revisions", key.namespace, after)]
                self.moved.append((after, revision["status"].get("actualReplicas", 0)))
        configured = latest == ready
        missing = {"status": "False", "reason": "RevisionMissing"}
        status["conditions"] = [
            {"type": "Ready", "status": "True" if configured and routed else "Unknown"},
            {"type": "ConfigurationsReady", "status": "True" if configured else "Unknown"},
            {"type": "RoutesReady", **({"status": "True"} if routed else missing)},
        ]
        self._objects.keep(key, service)

    def _ready(self, namespace: str, name: str) -> bool:
        revision = self._objects.kept.get(Key(GROUP, "revisions", namespace, name), {})
        conditions = revision.get("status", {}).get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _settle_revision(self, key: Key, old: dict[str, Any] | None) -> None:
        revision = self._objects.kept[key]
        scaler = Key(AUTOSCALERS, "podautoscalers", key.namespace, key.name)
        pods = Key("apps", "deployments", key.namespace, f"{key.name}-deployment")
        template = {"metadata": self._copied(revision), "spec": revision["spec"]}
        if old is None:
            made = {"metadata": {"annotations": _scaling(revision)}, "spec": {}}
            self._objects.create(scaler, made)
            self._objects.create(pods, {"spec": {"template": template}})
            return
        if self._objects.kept[pods]["spec"]["template"] != template:
            self._objects.replace(pods, {"spec": {"template": template}})
            self.rolled.append(key.name)
        if _scaling(old) != _scaling(revision) and self._keeps_pods:
            self._copy(key, scaler)
            self._grow(key)

    def _copied(self, revision: dict[str, Any]) -> dict[str, dict[str, str]]:
        """What a pod has of its Revision's annotations and labels."""
        apart = SCALING if self._keeps_pods else "-"
        return {
            kind: {
                name: value
                for name, value in (revision["metadata"].get(kind) or {}).items()
                if name not in _NOT_COPIED and not name.startswith(apart)
            }
            for kind in ("annotations", "labels")
        }

    def _grow(self, key: Key) -> None:
        revision = copy.deepcopy(self._objects.kept[key])
        status = revision.get("status", {})
        least = min(_least(revision), self._room(key))
        if not self.starting and status.get("actualReplicas", 0) < least:
            status |= {"actualReplicas": least, "desiredReplicas": _least(revision)}
            self._objects.keep(key, revision)

    def _settle_autoscaler(self, key: Key, old: dict[str, Any] | None) -> None:
        if old is not None and self._keeps_pods:
            self._copy(Key(GROUP, "revisions", key.namespace, key.name), key)

    def _copy(self, revision: Key, scaler: Key) -> None:
        made = copy.deepcopy(self._objects.kept[scaler])
        made["metadata"]["annotations"] = _scaling(self._objects.kept[revision])
        self._objects.keep(scaler, made)


def _name(template: dict[str, Any]) -> str | None:
    return template.get("metadata", {}).get("name")


def _count(thing: dict[str, Any], name: str, default: int) -> int:
    return int(thing["metadata"].get("annotations", {}).get(name, default))


def _least(revision: dict[str, Any]) -> int:
    return _count(revision, MIN_SCALE, 0)


def _first(revision: dict[str, Any]) -> int:
    """How many pods it has to have once to be ready, or none."""
    return max(_count(revision, INITIAL_SCALE, 1), _least(revision))


def _main(traffic: list[dict[str, Any]]) -> str | None:
    """The revision that has the most of it."""
    percents: dict[str, int] = {}
    for each in traffic:
        name = each["revisionName"]
        percents[name] = percents.get(name, 0) + (each.get("percent") or 0)
    return max(percents, key=lambda name: (percents[name], name), default=None)


def _most(revision: dict[str, Any]) -> float:
    return _count(revision, MAX_SCALE, 0) or math.inf


def _check(annotations: dict[str, str]) -> None:
    for complaint in _wrong(annotations):
        _refuse(complaint)


def _wrong(annotations: dict[str, str]) -> Iterator[str]:
    for name in (MIN_SCALE, MAX_SCALE, INITIAL_SCALE):
        value = annotations.get(name, "0")
        if not _COUNT.fullmatch(value):
            yield f"invalid value: {value}: metadata.annotations.{name}"
            return
    least, most = int(annotations.get(MIN_SCALE, 0)), int(annotations.get(MAX_SCALE, 0))
    if 0 < most < least:
        yield f"max-scale={most} is less than min-scale={least}: {MAX_SCALE}, {MIN_SCALE}"
    first = int(annotations.get(ACTIVATION_SCALE, least))
    if first < least:
        yield f"min-scale={least} is greater than activation-scale={first}: {ACTIVATION_SCALE}"
    if 0 < most < first:
        yield f"max-scale={most} is less than activation-scale={first}: {ACTIVATION_SCALE}"


def _refuse(complaint: str) -> None:
    raise Refused(
        "BadRequest",
        'admission webhook "validation.webhook.serving.knative.dev" denied the request: validation'
        f" failed: {complaint}",
    )


def _scaling(thing: dict[str, Any]) -> dict[str, str]:
    annotations = thing["metadata"].get("annotations", {})
    return {name: value for name, value in annotations.items() if name.startswith(SCALING)}
