"""What a kubelet would run, as words for `podman run`.

Nothing that is declared is passed over in silence: a field that is not translated here is an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.knative.manifests import quantity

if TYPE_CHECKING:
    from pathlib import Path

    from tests.knative.manifests import Manifests

_KNATIVE = {"K_SERVICE": "ember", "K_CONFIGURATION": "ember", "K_REVISION": "ember-00001"}
# Probes are asked by whoever runs the container; a port is only where it is asked.
_NOT_HERE = {"name", "ports", "readinessProbe", "livenessProbe"}


def podman_words(
    manifests: Manifests, pod: dict[str, Any], container: dict[str, Any], volumes: dict[str, Path]
) -> list[str]:
    """The words after `podman run` and its name and network.

    Args:
        manifests: have the ConfigMaps.
        pod: the specification of the pod.
        container: one of its containers.
        volumes: folders that stand for the pod's volumes, by name.

    Raises:
        ValueError: something is declared that this does not know.
    """
    left = {key: value for key, value in container.items() if key not in _NOT_HERE}
    environment = manifests.environment(container)
    left.pop("env", None), left.pop("envFrom", None)
    if "ports" in container:
        environment |= _KNATIVE | {"PORT": str(container["ports"][0]["containerPort"])}
    words = [f"--env={name}={value}" for name, value in environment.items()]
    words += _confined({**pod.get("securityContext", {}), **left.pop("securityContext", {})})
    words += _limited(left.pop("resources", {}))
    for mount in left.pop("volumeMounts", []):
        words.append(f"--volume={volumes[mount['name']]}:{mount['mountPath']}")
    words.append(left.pop("image"))
    words += [_filled_in(word, environment) for word in left.pop("args", [])]
    if left:
        raise ValueError(f"nothing here knows {sorted(left)}")
    return words


def _confined(context: dict[str, Any]) -> list[str]:
    context = dict(context)
    words = [f"--user={context.pop('runAsUser')}:{context.pop('runAsGroup')}"]
    if context.pop("readOnlyRootFilesystem", False):
        words += ["--read-only", "--read-only-tmpfs=false"]  # a kubelet mounts no tmpfs either
    if not context.pop("allowPrivilegeEscalation", True):
        words.append("--security-opt=no-new-privileges")
    words += [f"--cap-drop={name}" for name in context.pop("capabilities", {}).get("drop", [])]
    if context.pop("seccompProfile", {}).get("type") != "RuntimeDefault":  # podman's own default
        words.append("--security-opt=seccomp=unconfined")
    context.pop("runAsNonRoot", None)  # a kubelet looks at the user; so do the tests
    if context:
        raise ValueError(f"nothing here knows {sorted(context)}")
    return words


def _limited(resources: dict[str, Any]) -> list[str]:
    limits = dict(resources.get("limits", {}))
    words = []
    if "memory" in limits:
        size = int(quantity(limits.pop("memory")))
        words += [f"--memory={size}", f"--memory-swap={size}"]
    if "cpu" in limits:
        words.append(f"--cpus={quantity(limits.pop('cpu')):g}")
    if limits:
        raise ValueError(f"nothing here knows {sorted(limits)}")
    return words


def _filled_in(word: str, environment: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], word)
