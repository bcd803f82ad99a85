"""Services that Knative takes: one with nearly every field, and thirty as people write them."""

from __future__ import annotations

import copy
from pathlib import Path

import yaml

from keepalive.doctor.config import read

FLAGS = [
    *(f"kubernetes.podspec-{name}" for name in (
        "affinity", "dnsconfig", "dnspolicy", "fieldref", "hostaliases", "hostipc", "hostnetwork",
        "hostpid", "init-containers", "nodeselector", "persistent-volume-claim",
        "persistent-volume-write", "priorityclassname", "runtimeclassname", "schedulername",
        "securitycontext", "shareprocessnamespace", "tolerations", "topologyspreadconstraints",
        "volumes-csi", "volumes-emptydir", "volumes-ephemeral", "volumes-hostpath",
        "volumes-image", "volumes-mount-propagation",
    )),
    "kubernetes.containerspec-addcapabilities",
    "multi-container-probing",
]  # fmt: skip
EVERYTHING = {"metadata": {"name": "config-features"}, "data": dict.fromkeys(FLAGS, "enabled")}
ALLOWING = read([{"kind": "ConfigMap", **EVERYTHING}])
"""A cluster on which every flag is on."""
NAMED = {
    "apiVersion": "serving.knative.dev/v1",
    "kind": "Service",
    "metadata": {"name": "swap"},
}

FOLDER = Path(__file__).parent
RICH = yaml.safe_load((FOLDER / "rich.yaml").read_text())


def rich():
    """A copy of the Service that has nearly every field."""
    return copy.deepcopy(RICH)


def thirty():
    """(what it is, the Service) for each of the good ones."""
    for title, given in yaml.safe_load((FOLDER / "good.yaml").read_text()).items():
        metadata = {"metadata": {"name": "swap"}}
        yield (
            title,
            {"apiVersion": "serving.knative.dev/v1", "kind": "Service", **metadata, **given},
        )
