"""Which fields a Knative Service has: those that its webhook knows, the flags' ones included.

The API server drops or refuses any other, depending on its client; a misspelt field is never meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY = None
"""In the tree: whatever is below is not looked at."""
MAPPING: dict[str, Any] = {"*": ANY}
"""In the tree: names that anybody may choose."""
VALUE = "value"
"""In the tree: text, a number or a switch."""

_METADATA = {
    **dict.fromkeys(("name", "namespace", "generateName"), VALUE),
    **dict.fromkeys(("uid", "resourceVersion"), ANY),
    **dict.fromkeys(("generation", "creationTimestamp", "finalizers", "ownerReferences"), ANY),
    **dict.fromkeys(("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"), ANY),
    **dict.fromkeys(("annotations", "labels"), MAPPING),
}
_PROBE = {
    "httpGet": dict.fromkeys(("path", "port", "host", "scheme", "httpHeaders")),
    "tcpSocket": dict.fromkeys(("port", "host")),
    "grpc": dict.fromkeys(("port", "service")),
    "exec": {"command": ANY},
    **dict.fromkeys(("initialDelaySeconds", "timeoutSeconds", "periodSeconds"), ANY),
    **dict.fromkeys(("successThreshold", "failureThreshold"), ANY),
    "terminationGracePeriodSeconds": ANY,
}
_SECURITY = {
    **dict.fromkeys(("runAsUser", "runAsGroup", "runAsNonRoot", "readOnlyRootFilesystem"), ANY),
    **dict.fromkeys(("allowPrivilegeEscalation", "privileged", "seLinuxOptions"), ANY),
    **dict.fromkeys(("windowsOptions", "procMount", "appArmorProfile"), ANY),
    "capabilities": dict.fromkeys(("add", "drop")),
    "seccompProfile": dict.fromkeys(("type", "localhostProfile")),
}
_CONTAINER = {
    **dict.fromkeys(("name", "image", "imagePullPolicy", "workingDir"), VALUE),
    **dict.fromkeys(("command", "args"), ANY),
    **dict.fromkeys(("terminationMessagePath", "terminationMessagePolicy"), ANY),
    **dict.fromkeys(("stdin", "stdinOnce", "tty", "lifecycle", "restartPolicy"), ANY),
    "ports": [dict.fromkeys(("name", "containerPort", "protocol", "hostPort", "hostIP"), VALUE)],
    "env": [
        {
            "name": VALUE,
            "value": VALUE,
            "valueFrom": {
                "configMapKeyRef": dict.fromkeys(("name", "key", "optional")),
                "secretKeyRef": dict.fromkeys(("name", "key", "optional")),
                "fieldRef": dict.fromkeys(("apiVersion", "fieldPath")),
                "resourceFieldRef": dict.fromkeys(("containerName", "resource", "divisor")),
            },
        }
    ],
    "envFrom": [
        {
            "prefix": ANY,
            "configMapRef": dict.fromkeys(("name", "optional")),
            "secretRef": dict.fromkeys(("name", "optional")),
        }
    ],
    "resources": dict.fromkeys(("requests", "limits", "claims")),
    "volumeMounts": [
        {
            **dict.fromkeys(("name", "mountPath", "readOnly", "subPath", "subPathExpr"), VALUE),
            **dict.fromkeys(("mountPropagation", "recursiveReadOnly"), ANY),
        }
    ],
    "volumeDevices": ANY,
    "readinessProbe": _PROBE,
    "livenessProbe": _PROBE,
    "startupProbe": _PROBE,
    "securityContext": _SECURITY,
}
_VOLUME = {
    "name": VALUE,
    "emptyDir": dict.fromkeys(("medium", "sizeLimit")),
    "hostPath": dict.fromkeys(("path", "type")),
    "persistentVolumeClaim": dict.fromkeys(("claimName", "readOnly")),
    "configMap": dict.fromkeys(("name", "items", "defaultMode", "optional")),
    "secret": dict.fromkeys(("secretName", "items", "defaultMode", "optional")),
    "projected": dict.fromkeys(("sources", "defaultMode")),
    "image": dict.fromkeys(("reference", "pullPolicy")),
    "csi": ANY,
}
_REVISION = {
    **dict.fromkeys(("containerConcurrency", "timeoutSeconds"), ANY),
    **dict.fromkeys(("responseStartTimeoutSeconds", "idleTimeoutSeconds"), ANY),
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "volumes": [_VOLUME],
    **dict.fromkeys(("serviceAccountName", "automountServiceAccountToken"), ANY),
    **dict.fromkeys(("imagePullSecrets", "enableServiceLinks", "nodeSelector"), ANY),
    **dict.fromkeys(("affinity", "tolerations", "topologySpreadConstraints"), ANY),
    **dict.fromkeys(("runtimeClassName", "priorityClassName", "schedulerName"), ANY),
    **dict.fromkeys(("securityContext", "dnsPolicy", "dnsConfig", "hostAliases"), ANY),
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"), ANY),
    "terminationGracePeriodSeconds": ANY,
}
SERVICE: dict[str, Any] = {
    "apiVersion": ANY,
    "kind": ANY,
    "metadata": _METADATA,
    "spec": {
        "template": {"metadata": _METADATA, "spec": _REVISION},
        "traffic": [
            {
                **dict.fromkeys(("tag", "revisionName", "configurationName"), VALUE),
                **dict.fromkeys(("latestRevision", "percent", "url"), VALUE),
                "appendHeaders": ANY,
            }
        ],
    },
    "status": ANY,
}
"""Each known field, with those below it; a list of one is a list of such things."""

WHOLE_NUMBERS = (
    "containerConcurrency",
    "timeoutSeconds",
    "responseStartTimeoutSeconds",
    "idleTimeoutSeconds",
)
"""Fields of a revision that take nothing but a whole number."""


def misshapen(given: Any, known: Any = SERVICE, at: str = "") -> Iterator[str]:
    """What is not a mapping, a list or a single value where it must be one, in words."""
    if known is ANY:
        return
    if known is VALUE:
        if isinstance(given, dict | list):
            yield f"{at} must be a single value"
        return
    kind = "list" if isinstance(known, list) else "mapping"
    if not isinstance(given, list if kind == "list" else dict):
        yield f"{at or 'the document'} must be a {kind}"
    elif isinstance(given, list):
        for index, one in enumerate(given):
            yield from misshapen(one, known[0], f"{at}[{index}]")
    else:
        for key, value in given.items():
            if not isinstance(key, str):
                yield f"{at or 'the document'}: the name {key!r} must be a string; put it in quotes"
            elif value is not None and key in known:
                yield from misshapen(value, known[key], f"{at}.{key}".lstrip("."))


def unknown(given: Any, known: Any = SERVICE, at: str = "") -> Iterator[str]:
    """The paths of fields that do not exist, in something that is not misshapen."""
    if known in (ANY, MAPPING, VALUE) or given is None:
        return
    if isinstance(given, list):
        for index, one in enumerate(given):
            yield from unknown(one, known[0], f"{at}[{index}]")
    else:
        for key, value in given.items():
            path = f"{at}.{key}".lstrip(".")
            if key in known:
                yield from unknown(value, known[key], path)
            else:
                yield path
