"""A Kubernetes API server in this process, small but strict: for what talks to a cluster.

It keeps objects under Kubernetes' rules (`objects.py`), behaves as Knative does (`knative.py`), and
lets each token do what its role allows. `running` starts it:

    with running(knative="1.22.0") as kube:
        kube.create("services.serving.knative.dev", "ember", {...})
        client = Client(KubeConfig.from_file(kube.config(tmp_path)))
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.kube.discovery import discovery
from tests.kube.http import JsonHandler, serving
from tests.kube.knative import Knative
from tests.kube.objects import STATUSES, Key, Kind, Objects, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?"
)
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Call:
    """A request that was let in."""

    verb: str
    resource: str
    name: str


class Kube:
    """A cluster.

    Args:
        knative: its version; the namespace `knative-serving` tells it.

    Attributes:
        url: where it answers.
        objects: what it keeps.
        knative: Knative in it.
        roles: by token, the rules of what it allows; without any, everything is allowed.
        calls: what was let in.
        before: called with each call before it is answered; may change things, or raise.
    """

    def __init__(self, knative: str) -> None:
        self.url = ""
        self.objects = Objects(
            {
                ("", "namespaces"): Kind("v1", "Namespace"),
                ("", "configmaps"): Kind("v1", "ConfigMap"),
                ("", "events"): Kind("v1", "Event", _admit_event),
                ("coordination.k8s.io", "leases"): Kind("v1", "Lease", _admit_lease),
                ("autoscaling", "horizontalpodautoscalers"): Kind(
                    "v2", "HorizontalPodAutoscaler", _admit_scaler
                ),
            }
        )
        self.knative = Knative(self.objects, knative)
        self.roles: dict[str, list[dict[str, Any]]] = {}
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda _: None
        labels = {"app.kubernetes.io/version": knative}
        self.create("namespaces", "knative-serving", {"metadata": {"labels": labels}}, namespace="")

    def create(
        self, resource: str, name: str, thing: dict[str, Any], namespace: str = "ember"
    ) -> dict[str, Any]:
        return self.objects.create(_key(resource, name, namespace), thing)

    def get(self, resource: str, name: str, namespace: str = "ember") -> dict[str, Any]:
        return self.objects.get(_key(resource, name, namespace))

    def patch(
        self, resource: str, name: str, patch: dict[str, Any], namespace: str = "ember"
    ) -> dict[str, Any]:
        return self.objects.patch(_key(resource, name, namespace), patch)

    def list(self, resource: str, namespace: str = "ember") -> list[dict[str, Any]]:
        group = _key(resource, "", "").group
        return self.objects.list(group, resource.partition(".")[0], namespace)

    def config(self, folder: Path, token: str = "admin", namespace: str = "ember") -> Path:
        """A kubeconfig for a token."""
        path = folder / f"{token}.kubeconfig"
        context = {"cluster": "here", "user": "me", "namespace": namespace}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": context}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def _kinds(self) -> dict[str, dict[str, str]]:
        """As `discovery` takes them."""
        found: dict[str, dict[str, str]] = {}
        for (group, resource), kind in self.objects.kinds.items():
            version = f"{group}/{kind.version}" if group else kind.version
            found.setdefault(version, {})[kind.name] = resource
        return found

    def answer(self, request: JsonHandler, body: bytes) -> dict[str, Any]:
        """What is asked for.

        Raises:
            Refused: it is not had.
        """
        parts = urlsplit(request.path)
        if told := discovery(parts.path, self._kinds()):
            return told
        found = _PATH.fullmatch(parts.path)
        group = found["group"] or "" if found else ""
        if not found or (group, found["resource"]) not in self.objects.kinds:
            raise Refused("NotFound", "the server could not find the requested resource")
        key = Key(group, found["resource"], found["namespace"] or "", found["name"] or "")
        verb = _verb(request.command, key)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.roles and not _allowed(self.roles.get(token, []), verb, key):
            raise Refused(
                "Forbidden",
                f'{key.qualified} "{key.name}" is forbidden: User "{token}" cannot {verb} resource'
                f' "{key.resource}" in API group "{key.group}" in the namespace "{key.namespace}"',
            )
        call = Call(verb, key.qualified, key.name)
        self.calls.append(call)
        self.before(call)
        if verb == "get":
            found = self.objects.get(key)
            self.knative.read(key)
            return found
        if verb == "list":
            return {"kind": "List", "apiVersion": "v1", "items": self.objects.list(*key[:3])}
        if verb == "delete":
            return self.objects.delete(key)
        if verb == "patch" and request.headers.get("Content-Type") != _MERGE:
            raise Refused("UnsupportedMediaType", f"only {_MERGE} is supported")
        given, dry = json.loads(body), "dryRun" in parse_qs(parts.query)
        manager = request.headers.get("User-Agent", "").partition("/")[0]
        with self.knative.from_outside(), self.objects.changed_by(manager):
            if verb == "create":
                named = key._replace(name=given.get("metadata", {}).get("name", ""))
                return self.objects.create(named, given, dry=dry)
            change = self.objects.replace if verb == "update" else self.objects.patch
            return change(key, given, dry=dry)


@contextmanager
def running(knative: str = "1.22.0") -> Iterator[Kube]:
    """A cluster that answers on this machine."""
    kube = Kube(knative)

    class Handler(JsonHandler):
        def handle_one(self) -> None:
            try:
                self.answer(200, kube.answer(self, self.body()))
            except Refused as error:
                self.failed(STATUSES[error.reason], error.reason, str(error))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815

    with serving(Handler) as kube.url:
        yield kube


def _key(resource: str, name: str, namespace: str) -> Key:
    plural, _, group = resource.partition(".")
    return Key(group, plural, namespace, name)


def _verb(method: str, key: Key) -> str:
    if method == "GET":
        return "get" if key.name else "list"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]


def _allowed(rules: list[dict[str, Any]], verb: str, key: Key) -> bool:
    """As a role allows it; a name in a rule never fits what has no name yet."""
    return any(
        key.group in rule["apiGroups"]
        and key.resource in rule["resources"]
        and verb in rule["verbs"]
        and ("resourceNames" not in rule or key.name in rule["resourceNames"])
        for rule in rules
    )


def _admit_event(key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
    about = new.get("involvedObject", {})
    if about.get("namespace", key.namespace) != key.namespace:
        raise Refused("Invalid", "involvedObject.namespace: does not match event.namespace")
    if new.get("type") not in {"Normal", "Warning"}:
        raise Refused("Invalid", "type: must be Normal or Warning")


def _admit_lease(key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
    spec = new.get("spec", {})
    if spec.get("leaseDurationSeconds", 1) <= 0:
        raise Refused("Invalid", "spec.leaseDurationSeconds: must be greater than 0")
    for name in ("acquireTime", "renewTime"):
        if name in spec and not _MICRO_TIME.fullmatch(spec[name]):
            raise Refused(
                "BadRequest", f"parsing time {spec[name]!r} as 2006-01-02T15:04:05.000000Z"
            )


def _admit_scaler(key: Key, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
    least, most = new["spec"].get("minReplicas", 1), new["spec"]["maxReplicas"]
    if least < 1:
        raise Refused("Invalid", "spec.minReplicas: must be greater than or equal to 1")
    if most < least:
        raise Refused("Invalid", "spec.maxReplicas: must be greater than or equal to minReplicas")
