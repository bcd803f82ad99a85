"""Knative Serving as far as others notice it: what its webhook refuses, what its controllers do.

A Service makes a Revision whenever its template changes; a Revision's specification never changes;
its min-scale may, and from Knative 1.21 on goes to its PodAutoscaler, whose own annotations do not
last. Until 1.20 it is the other way round: the pods of a changed Revision are replaced.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from tests.kube.objects import Key, Kind, Objects, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "serving.knative.dev"
SCALING = "autoscaling.knative.dev"
AUTOSCALERS = "autoscaling.internal.knative.dev"
MIN_SCALE, MAX_SCALE = f"{SCALING}/min-scale", f"{SCALING}/max-scale"
_COUNT = re.compile(r"\d{1,9}")


class Knative:
    """Knative in a cluster.

    Args:
        objects: of the cluster; `install` gives it the kinds.
        version: of Knative.

    Attributes:
        rolled: revisions whose pods were replaced, in order.
        starting: whether new revisions wait for `become_ready`.
        address: of every Service, and of everything that has a tag.
    """

    def __init__(self, objects: Objects, version: str) -> None:
        self._objects = objects
        self._keeps_pods = tuple(map(int, version.split(".")[:2])) >= (1, 21)
        self.rolled: list[str] = []
        self.starting = False
        self.address = "http://ember.ember.example.com"
        objects.kinds |= {
            (GROUP, "services"): Kind("v1", "Service", self._admit_service, self._settle_service),
            (GROUP, "revisions"): Kind(
                "v1", "Revision", self._admit_revision, self._settle_revision
            ),
            (AUTOSCALERS, "podautoscalers"): Kind(
                "v1alpha1", "PodAutoscaler", None, self._settle_autoscaler
            ),
        }

    def become_ready(self, namespace: str, name: str, *, failed: str | None = None) -> None:
        """A revision has as many replicas as it has to start with, or never will."""
        with self._objects.lock:
            revision = self._objects.get(Key(GROUP, "revisions", namespace, name))
            ready = {"type": "Ready", "status": "False" if failed else "True"}
            told = {"reason": "ContainerMissing", "message": failed} if failed else {}
            revision["status"] = {"conditions": [{**ready, **told}]}
            self._objects.keep(Key(GROUP, "revisions", namespace, name), revision)
            service = revision["metadata"]["labels"][f"{GROUP}/service"]
            self._route(Key(GROUP, "services", namespace, service))

    def _admit_service(self, key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        annotations = new["metadata"].get("annotations", {})
        if wrong := [name for name in annotations if name.startswith(SCALING)]:
            _refuse(f"autoscaling annotations must be put under spec.template: {wrong[0]}")
        _check(new["spec"]["template"].get("metadata", {}).get("annotations", {}))
        percents = [each.get("percent") or 0 for each in new["spec"].get("traffic", [])]
        if percents and sum(percents) != 100:
            _refuse(f"Traffic targets sum to {sum(percents)}, want 100: spec.traffic")

    def _admit_revision(self, key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        _check(new["metadata"].get("annotations", {}))
        if old is not None and old["spec"] != new["spec"]:
            _refuse("Immutable fields changed (-old +new): spec")

    def _settle_service(self, key: Key, old: dict[str, Any] | None) -> None:
        service = self._objects.kept[key]
        template = service["spec"]["template"]
        if old is None or old["spec"]["template"] != template:
            number = int(service.get("status", {}).get("latestCreatedRevisionName", "-0")[-5:]) + 1
            name = f"{key.name}-{number:05}"
            service.setdefault("status", {})["latestCreatedRevisionName"] = name
            metadata = copy.deepcopy(template.get("metadata", {}))
            metadata.setdefault("labels", {})[f"{GROUP}/service"] = key.name
            revision = {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
            revision["spec"].setdefault("containerConcurrency", 0)
            self._objects.create(Key(GROUP, "revisions", key.namespace, name), revision)
            if not self.starting:
                self.become_ready(key.namespace, name)
        self._route(key)

    def _route(self, key: Key) -> None:
        service = copy.deepcopy(self._objects.kept[key])
        status = service.setdefault("status", {})
        latest = status["latestCreatedRevisionName"]
        if self._ready(key.namespace, latest):
            status["latestReadyRevisionName"] = latest
        if ready := status.get("latestReadyRevisionName"):
            wanted = service["spec"].get("traffic") or [{"latestRevision": True, "percent": 100}]
            status["url"] = self.address
            status["traffic"] = [
                {**each, "revisionName": each.get("revisionName", ready)}
                | ({"url": self.address} if "tag" in each else {})
                for each in wanted
            ]
        done = latest == status.get("latestReadyRevisionName")
        status["conditions"] = [{"type": "Ready", "status": "True" if done else "Unknown"}]
        self._objects.keep(key, service)

    def _ready(self, namespace: str, name: str) -> bool:
        revision = self._objects.kept[Key(GROUP, "revisions", namespace, name)]
        conditions = revision.get("status", {}).get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _settle_revision(self, key: Key, old: dict[str, Any] | None) -> None:
        revision = self._objects.kept[key]
        scaler = Key(AUTOSCALERS, "podautoscalers", key.namespace, key.name)
        if old is None:
            made = {"metadata": {"annotations": _scaling(revision)}, "spec": {}}
            self._objects.create(scaler, made)
        elif _scaling(old) != _scaling(revision):
            if self._keeps_pods:
                self._copy(key, scaler)
            else:
                self.rolled.append(key.name)

    def _settle_autoscaler(self, key: Key, old: dict[str, Any] | None) -> None:
        if old is not None and self._keeps_pods:
            self._copy(Key(GROUP, "revisions", key.namespace, key.name), key)

    def _copy(self, revision: Key, scaler: Key) -> None:
        made = copy.deepcopy(self._objects.kept[scaler])
        made["metadata"]["annotations"] = _scaling(self._objects.kept[revision])
        self._objects.keep(scaler, made)


def _check(annotations: dict[str, str]) -> None:
    for complaint in _wrong(annotations):
        _refuse(complaint)


def _wrong(annotations: dict[str, str]) -> Iterator[str]:
    for name in (MIN_SCALE, MAX_SCALE):
        value = annotations.get(name, "0")
        if not _COUNT.fullmatch(value):
            yield f"invalid value: {value}: metadata.annotations.{name}"
            return
    least, most = int(annotations.get(MIN_SCALE, 0)), int(annotations.get(MAX_SCALE, 0))
    if 0 < most < least:
        yield f"max-scale={most} is less than min-scale={least}: {MAX_SCALE}, {MIN_SCALE}"


def _refuse(complaint: str) -> None:
    raise Refused(
        "BadRequest",
        'admission webhook "validation.webhook.serving.knative.dev" denied the request: validation'
        f" failed: {complaint}",
    )


def _scaling(thing: dict[str, Any]) -> dict[str, str]:
    annotations = thing["metadata"].get("annotations", {})
    return {name: value for name, value in annotations.items() if name.startswith(SCALING)}
