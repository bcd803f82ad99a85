"""A stand-in for the API of a cluster: enough of it for `kubectl apply`, `diff`, `wait` and `get`.

It keeps objects, merges patches and checks dry runs. Of Knative it refuses what a flag of
config-features guards, and in a dry run a pod whose account is not there, as the API server would
when the webhook tries it; what becomes of Services does `tests.kube.knative`.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.kube.discovery import discovery
from tests.kube.http import JsonHandler, serving
from tests.kube.knative import Knative
from tests.kube.objects import Key, Objects
from tests.kube.objects import Refused as Missing

_SERVING = re.compile(
    r"/apis/serving\.knative\.dev/v1/namespaces/(?P<space>[^/]+)"
    r"/(?P<kind>services|revisions)/(?P<name>[^/]+)"
)
KINDS = {
    "v1": {
        "Namespace": "namespaces",
        "ConfigMap": "configmaps",
        "ServiceAccount": "serviceaccounts",
    },
    "batch/v1": {"CronJob": "cronjobs"},
    "serving.knative.dev/v1": {"Service": "services", "Revision": "revisions"},
}


class Refused(Exception):
    """The webhook's no."""


class Cluster:
    """What is in the cluster.

    Attributes:
        url: where its API is.
        objects: by the path of their address.
        calls: methods and paths so far that changed something.
        knative: in it, with Services and Revisions.
    """

    def __init__(self) -> None:
        self.url = ""
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.lock = threading.RLock()
        self._serving = Objects({})
        self.knative = Knative(self._serving, "1.22.0")
        self.put(
            "/api/v1/namespaces/knative-serving/configmaps/config-features",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "config-features", "namespace": "knative-serving"},
                "data": {"_example": "…", "kubernetes.podspec-fieldref": "enabled"},
            },
        )

    @property
    def features(self) -> dict[str, str]:
        return self.objects["/api/v1/namespaces/knative-serving/configmaps/config-features"]["data"]

    @property
    def revisions(self) -> list[dict[str, Any]]:
        return self._serving.list("serving.knative.dev", "revisions")

    def service(self, name: str = "ember", namespace: str = "ember") -> dict[str, Any]:
        self.knative.settle()
        return self._serving.get(Key("serving.knative.dev", "services", namespace, name))

    def patch(self, resource: str, name: str, patch: dict[str, Any]) -> None:
        """Change what Knative has, as somebody else would."""
        self._serving.patch(Key("serving.knative.dev", resource, "ember", name), patch)

    def get(self, path: str) -> dict[str, Any] | None:
        """An object, as it is at this moment."""
        if not (found := _SERVING.fullmatch(path)):
            return self.objects.get(path)
        key = Key("serving.knative.dev", found["kind"], found["space"], found["name"])
        try:
            thing = self._serving.get(key)
        except Missing:
            return None
        self.knative.read(key)
        return thing

    def put(self, path: str, new: dict[str, Any], *, dry: bool = False) -> dict[str, Any]:
        """Keep an object, unless it is refused."""
        old = self.objects.get(path)
        new = copy.deepcopy(new)
        if new["apiVersion"] == "serving.knative.dev/v1":
            return self._serve(path, new, dry=dry)
        new["metadata"].setdefault("uid", path)
        changed = old is None or _meant(old) != _meant(new)
        generation = (old or {}).get("metadata", {}).get("generation", 0) + changed
        new["metadata"] |= {"resourceVersion": str(generation), "generation": generation}
        if not dry:
            self.objects[path] = new
        return new

    def _serve(self, path: str, new: dict[str, Any], *, dry: bool) -> dict[str, Any]:
        space, name = new["metadata"]["namespace"], new["metadata"]["name"]
        self._admit(new, space, dry=dry)
        key = Key("serving.knative.dev", "services", space, name)
        change = self._serving.replace if self.get(path) else self._serving.create
        try:
            with self.knative.from_outside():
                return change(key, new, dry=dry)
        except Missing as error:
            raise Refused(str(error)) from None

    def delete(self, path: str) -> bool:
        """Whether there was one."""
        if found := _SERVING.fullmatch(path):
            key = Key("serving.knative.dev", found["kind"], found["space"], found["name"])
            try:
                self._serving.delete(key)
            except Missing:
                return False
            return True
        return self.objects.pop(path, None) is not None

    def _admit(self, service: dict[str, Any], space: str, *, dry: bool) -> None:
        spec = service["spec"]["template"]["spec"]
        flag = "kubernetes.podspec-init-containers"
        if "initContainers" in spec and self.features.get(flag) != "enabled":
            raise Refused("must not set the field(s): spec.template.spec.initContainers")
        account = spec.get("serviceAccountName", "default")
        if dry and f"/api/v1/namespaces/{space}/serviceaccounts/{account}" not in self.objects:
            raise Refused(
                'dry run failed with pods "dry-run-validation" is forbidden: error looking up'
                f' service account {space}/{account}: serviceaccount "{account}" not found:'
                " spec.template"
            )


def _meant(thing: dict[str, Any]) -> dict[str, Any]:
    return {key: thing[key] for key in thing if key not in {"metadata", "status"}}


def _merged(old: Any, patch: Any) -> Any:
    """RFC 7396; what kubectl's strategic patches say beyond it is not needed here."""
    if not isinstance(old, dict) or not isinstance(patch, dict):
        return patch
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif not key.startswith("$"):
            merged[key] = _merged(merged.get(key), value)
    return merged


@contextmanager
def running():
    """A cluster that answers on this machine."""
    cluster, stopping = Cluster(), threading.Event()

    class Handler(JsonHandler):
        def read(self):
            parts = urlsplit(self.path)
            if found := discovery(parts.path, KINDS):
                return self.answer(200, found)
            if found := cluster.get(parts.path):
                return self.answer(200, found)
            query = parse_qs(parts.query)
            if selector := query.get("fieldSelector"):
                name = selector[0].removeprefix("metadata.name=")
                path = f"{parts.path}/{name}"
                if "watch" in query:
                    return self.watched(path)
                thing = cluster.get(path)
                listed = {"kind": "List", "apiVersion": "v1", "items": [thing]}
                return self.answer(200, listed | {"metadata": {"resourceVersion": "1"}})
            return self.failed(404, "NotFound", f"{parts.path} not found")

        def watched(self, path):
            """What is there, a mark that this was all, what becomes of it, and then nothing."""
            thing = cluster.get(path)
            mark = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
            end = {"kind": thing["kind"], "apiVersion": thing["apiVersion"], "metadata": mark}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            later = [("MODIFIED", cluster.get(path)) for _ in range(cluster.knative.late)]
            for kind, about in (("ADDED", thing), ("BOOKMARK", end), *later):
                self.wfile.write(json.dumps({"type": kind, "object": about}).encode() + b"\n")
            self.wfile.flush()
            stopping.wait(60)
            self.close_connection = True

        def change(self, path, make):
            dry = "dryRun" in urlsplit(self.path).query
            with cluster.lock:
                try:
                    told = cluster.put(path, make(cluster.get(path) or {}), dry=dry)
                except Refused as error:
                    message = f'admission webhook "validation.webhook.serving.knative.dev": {error}'
                    return self.failed(400, "BadRequest", message)
                if not dry:
                    cluster.calls.append((self.command, path))
            return self.answer(201 if self.command == "POST" else 200, told)

        def create(self):
            new = self.content()
            path = f"{urlsplit(self.path).path}/{new['metadata']['name']}"
            self.change(path, lambda _: new)

        def update(self):
            new = self.content()
            self.change(urlsplit(self.path).path, lambda old: _merged(old, new))

        def remove(self):
            path = urlsplit(self.path).path
            self.body()
            with cluster.lock:
                gone = cluster.delete(path)
                cluster.calls.append((self.command, path))
            if not gone:
                return self.failed(404, "NotFound", f"{path} not found")
            return self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

        def content(self):
            return yaml.safe_load(self.body())

        do_GET, do_POST, do_PATCH, do_DELETE = read, create, update, remove  # noqa: N815

    with serving(Handler) as cluster.url:
        try:
            yield cluster
        finally:
            stopping.set()
