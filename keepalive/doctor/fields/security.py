"""What a container and a pod may do."""

from __future__ import annotations

from keepalive.doctor import formats
from keepalive.doctor.fields.common import ID, SWITCH, TEXTS, each
from keepalive.doctor.shape import BehindFlag, Fields, Many, Refused, Switch, Text

_SECCOMP = Fields(  # Kubernetes: validateSeccompProfileField
    {
        "type": Text(formats.among("RuntimeDefault", "Localhost", "Unconfined")),
        "localhostProfile": Text(formats.below),
    },
    needs=("type",),
)

_OF_THE_CLUSTER = Refused("Knative leaves it to the cluster's own policy")

SECURITY = Fields(
    {
        **each("runAsUser runAsGroup", ID),
        **each("runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation", SWITCH),
        "privileged": Switch(only=False, why="no container of Knative may be privileged"),
        "capabilities": Fields(
            {"drop": TEXTS, "add": BehindFlag("kubernetes.containerspec-addcapabilities", TEXTS)}
        ),
        "seccompProfile": _SECCOMP,
        **each("seLinuxOptions windowsOptions procMount appArmorProfile", _OF_THE_CLUSTER),
    }
)

POD_SECURITY = Fields(
    {
        **each("runAsUser runAsGroup fsGroup", ID),
        "runAsNonRoot": SWITCH,
        "supplementalGroups": Many(ID),
        "seccompProfile": _SECCOMP,
        **each("seLinuxOptions windowsOptions sysctls appArmorProfile", _OF_THE_CLUSTER),
        **each("fsGroupChangePolicy supplementalGroupsPolicy seLinuxChangePolicy", _OF_THE_CLUSTER),
    }
)
