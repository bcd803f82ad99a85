"""What manifests promise of security, beyond what `promises.hardened` says of users and tokens.

Each check yields what breaks the promise, in words.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from tests.knative.manifests import KNATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.knative.manifests import Manifests

UNCONFINED = {"DaemonSet/ember-store": "it owns a folder of the node"}
"""Pods that are not `restricted`, and why."""
ON_THE_NODE = "hostPath"
_ENFORCED = "pod-security.kubernetes.io/enforce"
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "projected", "secret"}
_VOLUMES |= {"persistentVolumeClaim", "image"}
_OF_THE_NODE = ("hostNetwork", "hostPID", "hostIPC")
_VARIABLE = re.compile(r"\$\((\w+)\)")


def restricted(manifests: Manifests) -> Iterator[str]:
    """Every pod is as Kubernetes' Pod Security Standard `restricted` has it, and is held to it.

    Where one is not, only its namespace says `privileged`.
    """
    beyond = False
    for name, pod in manifests.pods:
        told = list(_unrestricted(name, pod))
        shared = {volume["name"] for volume in pod.get("volumes", []) if ON_THE_NODE in volume}
        beyond |= bool(shared)
        if name not in UNCONFINED:
            yield from told
            for container in [*pod.get("initContainers", []), *pod["containers"]]:
                for mount in container.get("volumeMounts", []):
                    if mount["name"] in shared and not mount.get("readOnly"):
                        yield f"{name}: a folder of the node must be mounted readOnly"
    for space in manifests.of("Namespace"):
        held = space["metadata"].get("labels", {}).get(_ENFORCED)
        if held != ("privileged" if beyond else "restricted"):
            yield f"the namespace is held to {held}"


def _unrestricted(name: str, pod: dict[str, Any]) -> Iterator[str]:
    for field in _OF_THE_NODE:
        if pod.get(field):
            yield f"{name}: {field} is the node's"
    for volume in pod.get("volumes", []):
        for kind in volume.keys() - {"name"} - _VOLUMES - {ON_THE_NODE}:
            yield f"{name}: the volume {volume['name']} is of the kind {kind}"
    over = pod.get("securityContext", {})
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        has = {**over, **container.get("securityContext", {})}
        where = f"{name}/{container['name']}"
        if has.get("privileged") or has.get("procMount", "Default") != "Default":
            yield f"{where}: privileged or procMount"
        if has.get("allowPrivilegeEscalation") is not False:
            yield f"{where}: allowPrivilegeEscalation must be false"
        if has.get("runAsNonRoot") is not True or has.get("runAsUser") == 0:
            yield f"{where}: runAsNonRoot must be true"
        if has.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{where}: all capabilities must be dropped"
        if set(has.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}:
            yield f"{where}: no capability may be added"
        if has.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
            yield f"{where}: seccompProfile must be RuntimeDefault"
        if any(port.get("hostPort") for port in container.get("ports", [])):
            yield f"{where}: hostPort is the node's"


def secrets(manifests: Manifests) -> Iterator[str]:
    """No secret is among the arguments of a process, which all on its node can read."""
    for name, _, container in manifests.containers:
        secret = {
            one["name"]
            for one in container.get("env", [])
            if "secretKeyRef" in one.get("valueFrom", {})
        }
        for word in [*container.get("command", []), *container.get("args", [])]:
            for used in secret & set(_VARIABLE.findall(word)):
                yield f"{name}: {used}, a secret, is put into its arguments"


def pinned(manifests: Manifests) -> Iterator[str]:
    """Images of others are those of knative/images, where `make image-pin` pins them."""
    known = {f"{one['newName']}:{one['newTag']}": one for one in _images()}
    for name, _, container in manifests.containers:
        image, _, digest = container["image"].partition("@")
        if re.search(r"(^|/)ember(-keepalive|-engine-builder)?(:|$)", image):
            continue
        if image not in known:
            yield f"{name}: {image} is not in knative/images/kustomization.yaml"
        elif digest != known[image].get("digest", ""):
            yield f"{name}: {image} is not the one that is pinned"


@cache
def _images() -> list[dict[str, str]]:
    return yaml.safe_load((KNATIVE / "images" / "kustomization.yaml").read_text())["images"]


def closed(manifests: Manifests) -> Iterator[str]:
    """Nothing is reached and reaches anything but what a network policy names."""
    policies = [one["spec"] for one in manifests.of("NetworkPolicy")]
    default = [one for one in policies if not one["podSelector"]]
    if not any({"Ingress", "Egress"} <= set(one["policyTypes"]) for one in default):
        yield "there must be a policy for all pods of the namespace, for Ingress and Egress"
    for policy in policies:
        for rule in policy.get("egress", []):
            if not rule.get("to"):
                yield f"a rule of egress names nobody: {rule}"
        for rule in policy.get("ingress", []):
            if not rule.get("from"):
                yield f"a rule of ingress names nobody: {rule}"


CHECKS = (restricted, secrets, pinned)
"""Of everything; `closed` is for overlays that are for production."""
