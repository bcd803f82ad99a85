"""The fields of a Knative Service."""

from __future__ import annotations

from keepalive.doctor import formats
from keepalive.doctor.fields.common import (
    ANY,
    BIG,
    LABEL,
    SUBDOMAIN,
    SWITCH,
    TEXT,
    TEXTS,
    each,
    flag,
)
from keepalive.doctor.fields.container import INITIAL, SERVING
from keepalive.doctor.fields.placement import AFFINITY, NAME_SERVERS, SPREAD, TOLERATION
from keepalive.doctor.fields.security import POD_SECURITY
from keepalive.doctor.fields.volume import VOLUME
from keepalive.doctor.shape import INT64, Fields, Many, Named, Refused, Switch, Text, Whole

METADATA = Fields(
    {
        "name": Text(formats.dns_1035),  # knative.dev/pkg: ValidateObjectMetadata
        "generateName": Text(formats.dns_1035_prefix),
        "namespace": LABEL,
        "annotations": Named(TEXT, formats.annotation_name),
        "labels": Named(Text(formats.label_value), formats.qualified),
        **each("uid resourceVersion selfLink generation creationTimestamp", ANY),
        **each("deletionTimestamp deletionGracePeriodSeconds", ANY),
        **each("finalizers ownerReferences", ANY),
        "managedFields": Many(Named(ANY)),
    }
)

_SCHEDULED = Refused("say where with nodeSelector or affinity")
_OF_POD = Refused("Knative names and ends pods itself")
REVISION = Fields(
    {
        **each("timeoutSeconds containerConcurrency", Whole(-INT64, INT64)),  # see `limits`
        **each("responseStartTimeoutSeconds idleTimeoutSeconds", BIG),
        "containers": Many(SERVING),
        "initContainers": flag("init-containers", Many(INITIAL)),
        "volumes": Many(VOLUME, once="name"),
        "serviceAccountName": SUBDOMAIN,
        "automountServiceAccountToken": Switch(
            only=False, why="leave it out; a projected serviceAccountToken gives a pod a token"
        ),
        "imagePullSecrets": Many(Fields({"name": TEXT}), once="name"),
        "enableServiceLinks": SWITCH,
        "nodeSelector": flag("nodeselector", Named(Text(formats.label_value), formats.qualified)),
        "affinity": flag("affinity", AFFINITY),
        "tolerations": flag("tolerations", Many(TOLERATION)),
        "topologySpreadConstraints": flag("topologyspreadconstraints", Many(SPREAD)),
        "runtimeClassName": flag("runtimeclassname", SUBDOMAIN),
        "priorityClassName": flag("priorityclassname", SUBDOMAIN),
        "schedulerName": flag("schedulername", SUBDOMAIN),
        "securityContext": flag("securitycontext", POD_SECURITY),
        "hostAliases": flag(
            "hostaliases", Many(Fields({"ip": TEXT, "hostnames": TEXTS}, needs=("ip",)))
        ),
        "dnsPolicy": flag(
            "dnspolicy",
            Text(formats.among("Default", "ClusterFirst", "ClusterFirstWithHostNet", "None")),
        ),
        "dnsConfig": flag("dnsconfig", NAME_SERVERS),
        **{
            name: flag(name.lower(), SWITCH)
            for name in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace")
        },
        "terminationGracePeriodSeconds": Refused("timeoutSeconds is used for it"),
        "activeDeadlineSeconds": Refused("timeoutSeconds ends a request"),
        "restartPolicy": Refused("containers of Knative are always started again"),
        **each("nodeName schedulingGates", _SCHEDULED),
        **each("priority preemptionPolicy", Refused("use priorityClassName")),
        "serviceAccount": Refused("use serviceAccountName"),
        "resourceClaims": Refused("let a DeviceClass with extendedResourceName give a resource"),
        "resources": Refused("give each container its own"),
        **each("hostname subdomain setHostnameAsFQDN hostUsers os overhead", _OF_POD),
        **each("readinessGates ephemeralContainers", _OF_POD),
    },
    needs=("containers",),
)
_TARGET = Fields(  # route_validation.go: TrafficTarget.Validate
    {
        "tag": Text(formats.dns_1035),
        "revisionName": Text(formats.qualified),
        "percent": Whole(0, 100),
        "latestRevision": SWITCH,
        "configurationName": Refused("in a Service it is that of the Service"),
        "url": Refused("Knative writes it into the status"),
    }
)
SERVICE = Fields(
    {
        "apiVersion": Text(formats.among("serving.knative.dev/v1")),
        "kind": TEXT,
        "metadata": METADATA,
        "spec": Fields(
            {
                "template": Fields({"metadata": METADATA, "spec": REVISION}, needs=("spec",)),
                "traffic": Many(_TARGET, once="tag"),
            },
            needs=("template",),
        ),
        "status": ANY,
    },
    needs=("metadata", "spec"),
)
"""A Knative Service; a field that is not here is misspelt, or Knative has none of it."""
