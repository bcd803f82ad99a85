"""The fields of a container, of one that serves and of one that runs before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.doctor import formats
from keepalive.doctor.fields.common import (
    COUNT,
    FIELD,
    LABEL,
    RESOURCE,
    SUBDOMAIN,
    SWITCH,
    TEXT,
    TEXTS,
    each,
    flag,
)
from keepalive.doctor.fields.security import SECURITY
from keepalive.doctor.shape import Amount, Fields, Many, Named, Port, Refused, Text, Whole

if TYPE_CHECKING:
    from keepalive.doctor.shape import FieldKind

_HEADER = Fields({"name": Text(formats.header), "value": TEXT}, needs=("name",))
_HANDLERS: dict[str, FieldKind] = {
    "httpGet": Fields(
        {
            **each("path host", TEXT),
            "port": Port(),
            "scheme": Text(formats.among("HTTP", "HTTPS")),
            "httpHeaders": Many(_HEADER),
        }
    ),
    "tcpSocket": Fields({"port": Port(), "host": TEXT}),
    "grpc": Fields({"port": Whole(0, 65535), "service": TEXT}),
    "exec": Fields({"command": TEXTS}, needs=("command",)),
}
_TIMES = each("initialDelaySeconds timeoutSeconds periodSeconds failureThreshold", COUNT)
_READY = Fields(  # without any handler it is a tcpSocket (applyUserContainerDefaultReadinessProbe)
    {**_HANDLERS, **_TIMES, "successThreshold": COUNT}, one_of=(*_HANDLERS,), or_none=True
)
_ALIVE = Fields(  # Kubernetes: validateLivenessProbe, validateStartupProbe
    {**_HANDLERS, **_TIMES, "successThreshold": Whole(0, 1)}, one_of=(*_HANDLERS,)
)
_KEY = Fields({"name": SUBDOMAIN, "key": TEXT, "optional": SWITCH}, needs=("name", "key"))
_VARIABLE = Fields(
    {
        "name": Text(formats.variable),  # Kubernetes: ValidateEnv
        "value": TEXT,
        "valueFrom": Fields(
            {
                **each("configMapKeyRef secretKeyRef", _KEY),
                "fieldRef": flag("fieldref", FIELD),
                "resourceFieldRef": flag("fieldref", RESOURCE),
            },
            one_of=("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef"),
        ),
    },
    needs=("name",),
)
_FROM = Fields({"name": SUBDOMAIN, "optional": SWITCH}, needs=("name",))
_VARIABLES_FROM = Fields(
    {"prefix": Text(formats.variable), **each("configMapRef secretRef", _FROM)},
    one_of=("configMapRef", "secretRef"),
)
_PORT = Fields(
    {
        "name": TEXT,
        "containerPort": Whole(0, 65535),
        "protocol": Text(formats.among("TCP")),
        **each("hostPort hostIP", Refused("Knative finds pods by itself, on any node")),
    }
)
_ANY_PORT = Fields(  # Kubernetes: validateContainerPorts
    {
        **_PORT.known,
        "name": Text(formats.port_name),
        "protocol": Text(formats.among("TCP", "UDP", "SCTP")),
    }
)
_MOUNT = Fields(
    {
        "name": TEXT,
        "mountPath": Text(formats.absolute),
        "subPath": Text(formats.below),  # Kubernetes: validateLocalDescendingPath
        "readOnly": SWITCH,
        "mountPropagation": flag(
            "volumes-mount-propagation", Text(formats.among("None", "HostToContainer"))
        ),
        "subPathExpr": Refused("use subPath, or a projected volume with the items it needs"),
        "recursiveReadOnly": Refused("use readOnly"),
    },
    needs=("name", "mountPath"),
)
_AMOUNTS = Named(Amount(), formats.resource)  # Kubernetes: ValidateContainerResourceName
_INTERACTIVE = Refused("nobody is at the other end of a request's container")
_CONTAINER: dict[str, FieldKind] = {
    "name": LABEL,  # Kubernetes: validateContainerCommon
    "image": Text(formats.image),
    "imagePullPolicy": Text(formats.among("Always", "IfNotPresent", "Never")),
    **each("command args", TEXTS),
    **each("workingDir terminationMessagePath", TEXT),
    "terminationMessagePolicy": Text(formats.among("File", "FallbackToLogsOnError")),
    "env": Many(_VARIABLE, once="name"),
    "envFrom": Many(_VARIABLES_FROM),
    "resources": Fields(
        {
            **each("requests limits", _AMOUNTS),
            "claims": Refused("let a DeviceClass with extendedResourceName give a resource"),
        }
    ),
    "volumeMounts": Many(_MOUNT),
    "securityContext": SECURITY,
    "lifecycle": Refused("the queue-proxy's own hook is there; end on SIGTERM"),
    **each("stdin stdinOnce tty", _INTERACTIVE),
    "volumeDevices": Refused("mount a volume"),
    "restartPolicy": Refused("containers of Knative are always started again"),
    "resizePolicy": Refused("make a new revision"),
}
SERVING = Fields(
    {
        **_CONTAINER,
        "ports": Many(_PORT),
        "readinessProbe": _READY,
        **each("livenessProbe startupProbe", _ALIVE),
    },
    needs=("image",),
)
INITIAL = Fields(
    {
        **_CONTAINER,
        "ports": Many(_ANY_PORT),
        **each(
            "readinessProbe livenessProbe startupProbe lifecycle",
            Refused("an init container is not asked, it ends"),
        ),
        "restartPolicy": Refused("a sidecar is one of the containers, without ports"),
    },
    needs=("image",),
)
