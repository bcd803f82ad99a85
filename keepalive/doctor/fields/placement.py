"""The fields that say where a pod runs, and in which network."""

from __future__ import annotations

from keepalive.doctor import formats
from keepalive.doctor.fields.common import STRINGS, TEXT, TEXTS, each
from keepalive.doctor.shape import INT64, Fields, Many, Text, Whole

_REQUIREMENT = Fields(
    {
        "key": Text(formats.qualified),
        "operator": Text(formats.among("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
        "values": TEXTS,
    },
    needs=("key", "operator"),
)
_SELECTOR = Fields({"matchLabels": STRINGS, "matchExpressions": Many(_REQUIREMENT)})
_TERM = Fields(dict.fromkeys(("matchExpressions", "matchFields"), Many(_REQUIREMENT)))
_POD_TERM = Fields(
    {
        **each("labelSelector namespaceSelector", _SELECTOR),
        **each("namespaces matchLabelKeys mismatchLabelKeys", TEXTS),
        "topologyKey": Text(formats.qualified),
    },
    needs=("topologyKey",),
)
_WEIGHT = Whole(1, 100)
_REQUIRED, _PREFERRED = (
    f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
)
_NEAR = Fields(
    {
        _REQUIRED: Many(_POD_TERM),
        _PREFERRED: Many(
            Fields({"weight": _WEIGHT, "podAffinityTerm": _POD_TERM}, ("weight", "podAffinityTerm"))
        ),
    }
)
AFFINITY = Fields(  # Kubernetes: validateAffinity
    {
        "nodeAffinity": Fields(
            {
                _REQUIRED: Fields({"nodeSelectorTerms": Many(_TERM)}, needs=("nodeSelectorTerms",)),
                _PREFERRED: Many(
                    Fields({"weight": _WEIGHT, "preference": _TERM}, ("weight", "preference"))
                ),
            }
        ),
        **each("podAffinity podAntiAffinity", _NEAR),
    }
)
TOLERATION = Fields(  # Kubernetes: ValidateTolerations
    {
        "key": Text(formats.qualified),
        "operator": Text(formats.among("Exists", "Equal", "Lt", "Gt")),
        "value": Text(formats.label_value),
        "effect": Text(formats.among("NoSchedule", "PreferNoSchedule", "NoExecute")),
        "tolerationSeconds": Whole(-INT64, INT64),
    }
)
_POLICY = Text(formats.among("Honor", "Ignore"))
SPREAD = Fields(  # Kubernetes: validateTopologySpreadConstraints
    {
        **each("maxSkew minDomains", Whole(1)),
        "topologyKey": Text(formats.qualified),
        "whenUnsatisfiable": Text(formats.among("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _SELECTOR,
        "matchLabelKeys": TEXTS,
        **each("nodeAffinityPolicy nodeTaintsPolicy", _POLICY),
    },
    needs=("maxSkew", "topologyKey", "whenUnsatisfiable"),
)
NAME_SERVERS = Fields(
    {
        **each("nameservers searches", TEXTS),
        "options": Many(Fields(each("name value", TEXT), needs=("name",))),
    }
)
