"""What an API server keeps, and its rules for every kind: versions, conflicts, merge patches.

Who has last changed which annotation or field of the specification is kept with each object, as
`metadata.managedFields` has it.
"""

from __future__ import annotations

import copy
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVICES, REVISIONS = "services.serving.knative.dev", "revisions.serving.knative.dev"
LEASES, SCALERS = "leases.coordination.k8s.io", "horizontalpodautoscalers.autoscaling"
"""Resources, as `Key.qualified` has them."""
STATUSES = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "AlreadyExists": 409,
    "Conflict": 409,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
}


class Refused(Exception):
    """The server's no.

    Args:
        reason: one of `STATUSES`.
        message: for people.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Key(NamedTuple):
    """Where an object is; what has no namespace has an empty one, the core group an empty name."""

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def qualified(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True)
class Kind:
    """What is special about a kind.

    Attributes:
        version: of its API.
        name: of the kind.
        admit: may change the new object, or refuse it; gets the old one, or None.
        settle: what controllers do once it is kept.
    """

    version: str
    name: str
    admit: Any = None
    settle: Any = None


class Objects:
    """The objects.

    Args:
        kinds: by group and resource.

    Attributes:
        kept: what there is.
        manager: the name of who changes something.
    """

    def __init__(self, kinds: dict[tuple[str, str], Kind]) -> None:
        self.kinds = kinds
        self.kept: dict[Key, dict[str, Any]] = {}
        self.lock = threading.RLock()
        self.manager = "kubectl"
        self._version = 0

    @contextmanager
    def changed_by(self, manager: str) -> Iterator[None]:
        """Changes meanwhile are that manager's."""
        with self.lock:
            before, self.manager = self.manager, manager
            try:
                yield
            finally:
                self.manager = before

    def get(self, key: Key) -> dict[str, Any]:
        with self.lock:
            if key not in self.kept:
                raise Refused("NotFound", f'{key.qualified} "{key.name}" not found')
            return copy.deepcopy(self.kept[key])

    def list(self, group: str, resource: str, namespace: str = "") -> list[dict[str, Any]]:
        with self.lock:
            found = [
                thing
                for key, thing in sorted(self.kept.items())
                if key[:2] == (group, resource) and namespace in {"", key.namespace}
            ]
            return copy.deepcopy(found)

    def create(self, key: Key, new: dict[str, Any], *, dry: bool = False) -> dict[str, Any]:
        with self.lock:
            if not key.name:
                self._version += 1
                stem = new.get("metadata", {}).get("generateName")
                if not stem:
                    raise Refused("Invalid", "name or generateName is required")
                key = key._replace(name=f"{stem}{self._version:05x}")
            if key in self.kept:
                raise Refused("AlreadyExists", f'{key.qualified} "{key.name}" already exists')
            return self._put(key, None, new, dry=dry)

    def replace(self, key: Key, new: dict[str, Any], *, dry: bool = False) -> dict[str, Any]:
        with self.lock:
            return self._put(key, self.get(key), new, dry=dry)

    def patch(self, key: Key, patch: dict[str, Any], *, dry: bool = False) -> dict[str, Any]:
        with self.lock:
            old = self.get(key)
            return self._put(key, old, _merged(old, patch), dry=dry)

    def delete(self, key: Key) -> dict[str, Any]:
        with self.lock:
            gone = self.get(key)
            del self.kept[key]
            return gone

    def _put(
        self, key: Key, old: dict[str, Any] | None, new: dict[str, Any], *, dry: bool
    ) -> dict[str, Any]:
        kind, new = self.kinds[key[:2]], copy.deepcopy(new)
        metadata = new.setdefault("metadata", {})
        metadata |= {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
        new["apiVersion"] = f"{key.group}/{kind.version}" if key.group else kind.version
        new["kind"] = kind.name
        given = metadata.pop("resourceVersion", None)
        if old is not None and given not in {None, old["metadata"]["resourceVersion"]}:
            raise Refused(
                "Conflict",
                f'Operation cannot be fulfilled on {key.qualified} "{key.name}": the object has'
                " been modified; please apply your changes to the latest version and try again",
            )
        before = (old or {}).get("metadata", {})
        metadata["uid"] = before.get("uid", f"uid-of-{key.name}")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["creationTimestamp"] = before.get("creationTimestamp", now)
        if old is not None and "status" in old:  # which only controllers change
            new["status"] = copy.deepcopy(old["status"])
        metadata.pop("managedFields", None)
        if kind.admit:
            kind.admit(key, old, new)
        metadata["managedFields"] = _managed(old, new, self.manager, now)
        changed = old is None or old.get("spec") != new.get("spec")
        metadata["generation"] = before.get("generation", 0) + changed
        if dry:
            return {**new, "metadata": {**metadata, "resourceVersion": "0"}}
        self.keep(key, new)
        if kind.settle:
            kind.settle(key, old)
        return self.get(key)

    def keep(self, key: Key, thing: dict[str, Any]) -> None:
        """Keep an object as it is, with a new version: for controllers."""
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        self.kept[key] = thing


def _managed(
    old: dict[str, Any] | None, new: dict[str, Any], manager: str, now: str
) -> list[dict[str, Any]]:
    """Each field belongs to whoever has changed it last."""
    before, after = _fields(old or {}), _fields(new)
    changed = {path for path, value in after.items() if before.get(path, ...) != value}
    kept = []
    for entry in (old or {}).get("metadata", {}).get("managedFields", []):
        owned = _owned(entry["fieldsV1"]) & set(after) - changed
        if entry["manager"] == manager:
            changed, now = changed | owned, now if changed else entry["time"]
        elif owned:
            kept.append({**entry, "fieldsV1": _nested(owned)})
    if changed:
        about = {"manager": manager, "operation": "Update", "time": now, "fieldsType": "FieldsV1"}
        kept.append({**about, "apiVersion": new["apiVersion"], "fieldsV1": _nested(changed)})
    return kept


def _fields(thing: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    annotations = thing.get("metadata", {}).get("annotations") or {}
    found = {
        ("f:metadata", "f:annotations", f"f:{name}"): annotations[name] for name in annotations
    }
    return found | {("f:spec", f"f:{name}"): value for name, value in thing.get("spec", {}).items()}


def _owned(fields: dict[str, Any]) -> set[tuple[str, ...]]:
    paths = {("f:spec", name) for name in fields.get("f:spec", {})}
    annotations = fields.get("f:metadata", {}).get("f:annotations", {})
    return paths | {("f:metadata", "f:annotations", name) for name in annotations}


def _nested(paths: set[tuple[str, ...]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path in sorted(paths):
        place = made
        for name in path:
            place = place.setdefault(name, {})
    return made


def _merged(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
