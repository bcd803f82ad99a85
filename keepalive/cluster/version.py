"""Whether Knative keeps the pods of a Revision whose floor is changed: from 1.21 on it does.

Before, all annotations of a Revision went into the template of its pods, so that a changed floor
replaced them all. A Revision's own Deployment shows which of the two it is: whoever may read
Deployments of one namespace can tell, without rights elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keepalive.cluster.autoscaling import PREFIX
from keepalive.cluster.client import Cluster, Missing, Resource
from keepalive.cluster.target import annotations_of
from keepalive.failure import Exit, Failure

if TYPE_CHECKING:
    from typing import Any

SYSTEM = "knative-serving"
_LEAST_VERSION = (1, 21)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_LABEL = "app.kubernetes.io/version"
_OLD = (
    "before 1.21, changing min-scale on a Revision replaces all its pods. Upgrade Knative, or use"
    " --hpa on a Deployment of your own. Nothing has been changed."
)


def check_version(cluster: Cluster, revision: str, given: str | None) -> None:
    """See that a changed Revision keeps its pods.

    Args:
        cluster: to ask.
        revision: any that has autoscaling annotations.
        given: the version of Knative Serving, from somebody who knows; None to look it up.

    Raises:
        Failure: it would not, or nobody knows.
    """
    if given is None and (copied := _copied(cluster, revision)) is not None:
        if copied:
            raise Failure(
                f"Knative Serving copies the floor of {revision} into its pods, as it did {_OLD}",
                Exit.CONFIG,
            )
        return
    text = given or _label(cluster)
    if not (found := _VERSION.match(text)):
        raise Failure(
            f"{text!r} is no version of Knative Serving, so nobody knows whether a changed floor"
            " would replace all pods. Say which it is: --knative-version 1.21",
            Exit.CONFIG,
        )
    if tuple(map(int, found.groups())) < _LEAST_VERSION:
        raise Failure(f"Knative Serving is {text}: {_OLD}", Exit.CONFIG)


def _copied(cluster: Cluster, revision: str) -> bool | None:
    """Whether autoscaling annotations are copied into pods; None when nothing shows it."""
    try:
        if not _scaling(cluster.get(Resource.REVISION, revision)):
            return None
        deployment = cluster.get(Resource.DEPLOYMENT, f"{revision}-deployment")
    except Missing:  # a long name is shortened by Knative
        return None
    except Failure as failure:
        if failure.exit_code is not Exit.FORBIDDEN:
            raise
        return None
    return _scaling({"metadata": {}, **deployment["spec"]["template"]})


def _scaling(thing: dict[str, Any]) -> bool:
    return any(name.startswith(PREFIX) for name in annotations_of(thing))


def _label(cluster: Cluster) -> str:
    try:
        namespace = cluster.get(Resource.NAMESPACE, SYSTEM)
        return str((namespace["metadata"].get("labels") or {})[_LABEL])
    except (Missing, KeyError, Failure) as error:
        if isinstance(error, Failure) and error.exit_code is not Exit.FORBIDDEN:
            raise
        raise Failure(
            "Nobody knows whether a changed floor would replace all pods: neither the Deployment"
            f" of the Revision shows it, nor may the label {_LABEL} of the namespace {SYSTEM} be"
            " read. Say which version of Knative Serving it is: --knative-version 1.21",
            Exit.CONFIG,
        ) from None
