"""The fields of a volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.doctor import formats
from keepalive.doctor.fields.common import (
    ANY,
    FIELD,
    LABEL,
    MODE,
    RESOURCE,
    STRINGS,
    SUBDOMAIN,
    SWITCH,
    TEXT,
    each,
    flag,
)
from keepalive.doctor.shape import Amount, Fields, Many, Refused, Text, Whole

if TYPE_CHECKING:
    from keepalive.doctor.shape import FieldKind

_ITEM = Fields(
    {"key": TEXT, "path": Text(formats.below), "mode": MODE},
    needs=("key", "path"),
)
_FILES: dict[str, FieldKind] = {"items": Many(_ITEM), "optional": SWITCH}
_DOWNWARD = Fields(
    {
        "path": Text(formats.below),
        "mode": MODE,
        "fieldRef": FIELD,
        "resourceFieldRef": RESOURCE,
    },
    needs=("path",),
    one_of=("fieldRef", "resourceFieldRef"),
)
_SOURCES: dict[str, FieldKind] = {
    **each("configMap secret", Fields({**_FILES, "name": SUBDOMAIN}, needs=("name",))),
    "downwardAPI": Fields({"items": Many(_DOWNWARD)}),
    "serviceAccountToken": Fields(
        {
            "audience": TEXT,
            "expirationSeconds": Whole(600, 2**32),  # Kubernetes: validateProjectionSources
            "path": Text(formats.below),
        },
        needs=("path",),
    ),
}
_HOST_TYPES = ("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket")
_VOLUMES: dict[str, FieldKind] = {
    "emptyDir": flag(
        "volumes-emptydir",
        Fields({"medium": Text(formats.among("Memory")), "sizeLimit": Amount()}),
    ),
    "configMap": Fields(
        {**_FILES, "name": SUBDOMAIN, "defaultMode": MODE},
        needs=("name",),  # Kubernetes: validateConfigMapVolumeSource
    ),
    "secret": Fields(
        {**_FILES, "secretName": SUBDOMAIN, "defaultMode": MODE}, needs=("secretName",)
    ),
    "projected": Fields(
        {"defaultMode": MODE, "sources": Many(Fields(_SOURCES, one_of=(*_SOURCES,)))}
    ),
    "persistentVolumeClaim": flag(
        "persistent-volume-claim",
        Fields({"claimName": SUBDOMAIN, "readOnly": SWITCH}, needs=("claimName",)),
    ),
    "hostPath": flag(
        "volumes-hostpath",
        Fields(  # Kubernetes: validateHostPathVolumeSource
            {
                "path": Text(formats.within),
                "type": Text(formats.among(*_HOST_TYPES, "CharDevice", "BlockDevice")),
            },
            needs=("path",),
        ),
    ),
    "image": flag(
        "volumes-image",
        Fields(
            {
                "reference": TEXT,
                "pullPolicy": Text(formats.among("Always", "IfNotPresent", "Never")),
            },
            needs=("reference",),
        ),
    ),
    "csi": flag(
        "volumes-csi",
        Fields(
            {
                **each("driver fsType", TEXT),
                "readOnly": SWITCH,
                "volumeAttributes": STRINGS,
                "nodePublishSecretRef": Fields({"name": TEXT}),
            },
            needs=("driver",),
        ),
    ),
    "ephemeral": flag(
        "volumes-ephemeral",
        Fields({"volumeClaimTemplate": ANY}, needs=("volumeClaimTemplate",)),
    ),
}
VOLUME = Fields(
    {
        "name": LABEL,
        **_VOLUMES,
        "downwardAPI": Refused("put it into the sources of a projected volume"),
        "nfs": Refused("use a persistentVolumeClaim"),
    },
    needs=("name",),
    one_of=(*_VOLUMES,),
)
