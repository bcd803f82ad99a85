"""One way to a cluster's API: objects as plain values, failures with what to do about them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from keepalive.failure import Exit, Failure, bring

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightkube import Client

_TIMEOUT_S = 10.0


class Resource(Enum):
    """What is read or changed: group, version, kind, plural."""

    SERVICE = ("serving.knative.dev", "v1", "Service", "services")
    REVISION = ("serving.knative.dev", "v1", "Revision", "revisions")
    SCALER = ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
    DEPLOYMENT = ("apps", "v1", "Deployment", "deployments")
    LEASE = ("coordination.k8s.io", "v1", "Lease", "leases")
    EVENT = ("", "v1", "Event", "events")
    NAMESPACE = ("", "v1", "Namespace", "namespaces")

    def __str__(self) -> str:
        group, _, _, plural = self.value
        return f"{plural}.{group}" if group else plural


class Missing(Exception):
    """There is no such object."""


class Conflict(Exception):
    """Somebody else has changed the object, or made it, in the meantime."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, and a namespace in it.

    Attributes:
        client: of lightkube.
        namespace: of the objects.
    """

    client: Client
    namespace: str

    @classmethod
    def connect(cls, namespace: str | None = None) -> Self:
        """As kubectl would: KUBECONFIG, `~/.kube/config`, or the pod's own account.

        Args:
            namespace: None for the one of the configuration.

        Raises:
            Failure: there is no configuration, or no client for it.
        """
        try:
            import httpx2
            import yaml
            from lightkube import Client
            from lightkube.core.exceptions import ConfigError
        except ModuleNotFoundError as error:
            raise Failure(f"This needs {error.name}: {bring('k8s')}", Exit.UNAVAILABLE) from None
        try:
            client = Client(namespace=namespace, timeout=httpx2.Timeout(_TIMEOUT_S))
        except (ConfigError, OSError, KeyError, ValueError, yaml.YAMLError) as error:
            raise Failure(
                f"No cluster is configured: {error}. Set KUBECONFIG, or run it in a pod that has a"
                " service account's token.",
                Exit.CONFIG,
            ) from None
        return cls(client, namespace or client.namespace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def get(self, resource: Resource, name: str) -> dict[str, Any]:
        """An object.

        Raises:
            Missing: there is none.
            Failure: it is not allowed, is refused, or nothing answers.
        """
        kind = _class(resource)
        where = {} if resource is Resource.NAMESPACE else {"namespace": self.namespace}
        return self._asked("get", resource, name, lambda: self.client.get(kind, name, **where))

    def patch(
        self, resource: Resource, name: str, patch: dict[str, Any], *, version: str
    ) -> dict[str, Any]:
        """Change an object that still has that version.

        Raises:
            Conflict: it has another version.
            Missing: there is none.
            Failure: it is not allowed, is refused, or nothing answers.
        """
        from lightkube.types import PatchType

        metadata = {**patch.get("metadata", {}), "resourceVersion": version}
        kind, asked = _class(resource), {**patch, "metadata": metadata}
        how: dict[str, Any] = {"namespace": self.namespace, "patch_type": PatchType.MERGE}
        return self._asked(
            "patch", resource, name, lambda: self.client.patch(kind, name, asked, **how)
        )

    def create(self, resource: Resource, thing: dict[str, Any]) -> dict[str, Any]:
        """Make an object.

        Raises:
            Conflict: it is there already.
            Failure: it is not allowed, is refused, or nothing answers.
        """
        name = thing["metadata"].get("name", "")
        made = _whole(resource, thing, self.namespace)
        return self._asked("create", resource, name, lambda: self.client.create(made))

    def replace(self, resource: Resource, name: str, thing: dict[str, Any]) -> dict[str, Any]:
        """Put an object into the place of one that has the `resourceVersion` it names.

        Raises:
            Conflict: it has another version.
            Missing: there is none.
            Failure: it is not allowed, is refused, or nothing answers.
        """
        made = _whole(resource, thing, self.namespace)
        return self._asked("update", resource, name, lambda: self.client.replace(made))

    def _asked(
        self, verb: str, resource: Resource, name: str, ask: Callable[[], Any]
    ) -> dict[str, Any]:
        """Ask, and say in our words what goes wrong.

        Raises:
            Conflict: it is not as it was.
            Missing: it is not there.
            Failure: it is not allowed, is refused, or nothing answers.
        """
        import httpx2
        from lightkube.core.exceptions import ApiError

        what = f"{verb} {resource} {name}".rstrip()
        try:
            return dict(ask())
        except ApiError as error:
            status, said = error.response.status_code, error.status.message
            if status == HTTPStatus.NOT_FOUND:
                raise Missing(said) from None
            if status == HTTPStatus.CONFLICT:
                raise Conflict(said) from None
            if status == HTTPStatus.UNAUTHORIZED:
                raise Failure(
                    f"The cluster does not know who asks to {what}: {said}. Log in anew; in a pod,"
                    " see that it has its account's token.",
                    Exit.FORBIDDEN,
                ) from None
            if status == HTTPStatus.FORBIDDEN:
                where = "" if resource is Resource.NAMESPACE else f" in {self.namespace}"
                raise Failure(
                    f"Not allowed to {what}: {said}. The account needs a role with the verb {verb}"
                    f" on {resource}{where}.",
                    Exit.FORBIDDEN,
                ) from None
            raise Failure(f"The cluster refuses to {what}: {said}.", Exit.CONFIG) from None
        except (httpx2.HTTPError, ValueError) as error:
            raise Failure(
                f"The cluster does not answer to {what}: {error or type(error).__name__}. See that"
                f" {self.client.config.cluster.server} can be reached from here.",
                Exit.UNAVAILABLE,
            ) from None


@cache
def _class(resource: Resource) -> Any:
    """What lightkube calls objects by, when it has no model of them: they stay plain."""
    from lightkube.generic_resource import create_global_resource, create_namespaced_resource

    if resource is Resource.NAMESPACE:
        return create_global_resource(*resource.value)
    return create_namespaced_resource(*resource.value)


def _whole(resource: Resource, thing: dict[str, Any], namespace: str) -> Any:
    group, version, kind, _ = resource.value
    api = f"{group}/{version}" if group else version
    metadata = {**thing["metadata"], "namespace": namespace}
    return _class(resource)({"apiVersion": api, "kind": kind, **thing, "metadata": metadata})
