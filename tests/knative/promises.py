"""What our manifests promise beyond being accepted: no cold start in a request, no lost request.

Each check yields what breaks the promise, in words. The reasons are in docs/deploy.md.
"""

from __future__ import annotations

import math
import re
import tomllib
from typing import TYPE_CHECKING, Any

from function.settings import load
from tests.knative.manifests import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.settings import Settings
    from tests.knative.manifests import Manifests

QUEUE_PROXY_DRAIN_S = 30
"""How long a queue-proxy that is told to stop keeps forwarding; only then are we told."""
ROOTS = {"DaemonSet/ember-store/own"}
"""Containers that have to be root: only root may give a folder away."""
_LIMITS = ("timeoutSeconds", "responseStartTimeoutSeconds", "idleTimeoutSeconds")


def _scale(manifests: Manifests, name: str) -> int:
    return int(manifests.annotations.get(f"autoscaling.knative.dev/{name}", 0))


def replica_settings(manifests: Manifests) -> Settings:
    """Those of a replica; where a file is needed that only a pod has, any will do."""
    environment = manifests.environment(manifests.main)
    ours = {k: v for k, v in environment.items() if k.startswith("EMBER_")}
    return load({k: __file__ if v.startswith("/etc/ember/") else v for k, v in ours.items()})


def one_pod(manifests: Manifests) -> Iterator[str]:
    """One cold request must not start two pods."""
    places = manifests.revision.get("containerConcurrency", 0)
    if not places:
        yield "containerConcurrency must be set: without it nothing limits a replica"
        return
    given = manifests.annotations
    if given.get("autoscaling.knative.dev/class", "").startswith("hpa."):
        return  # the HPA does not aim at a part of the target
    target = float(given.get("autoscaling.knative.dev/target", places))
    percent = float(given.get("autoscaling.knative.dev/target-utilization-percentage", 70))
    if math.ceil(1 / (min(target, places) * percent / 100)) != 1:
        yield f"one cold request starts several pods: {places} places at {percent:g} %"


def places(manifests: Manifests) -> Iterator[str]:
    """A replica gets twice what it works on at once: its threads, or its largest batch."""
    threads = replica_settings(manifests).engines.threads
    threads = threads or math.ceil(quantity(manifests.main["resources"]["limits"]["cpu"]))
    batch = max((max(one.get("buckets", [1])) for one in models(manifests)), default=1)
    wanted = 2 * max(threads, batch)
    if manifests.revision.get("containerConcurrency") != wanted:
        yield f"containerConcurrency must be {wanted}: {threads} threads, batches of {batch}"


def models(manifests: Manifests) -> list[dict[str, Any]]:
    """The entries of the manifest of models, where a ConfigMap has it."""
    texts = (one["data"].get("models.toml") for one in manifests.of("ConfigMap"))
    return [entry for text in texts if text for entry in tomllib.loads(text)["model"]]


def warm_floor(manifests: Manifests) -> Iterator[str]:
    """There is always a replica, a new revision starts with as many, and panic has a ceiling."""
    floor, initial = _scale(manifests, "min-scale"), _scale(manifests, "initial-scale")
    # The activator holds what comes while there is no replica; only then may there be none.
    held = manifests.annotations.get("autoscaling.knative.dev/target-burst-capacity") == "-1"
    if floor < 1 and not held:
        yield "min-scale must be 1 or more"
    # With 0 as well: a new revision waits for the larger of the two (kpa.go, activeThreshold).
    if initial < floor:
        yield "initial-scale must be min-scale or more: it would be without effect"
    if _scale(manifests, "max-scale") < max(floor, 1):
        yield "max-scale must be set: a panic during a cold start overshoots"


def deadlines(manifests: Manifests) -> Iterator[str]:
    """A request outlives the worst cold start, and our answer comes before Knative's bare 504.

    The activator holds requests while no replica is there, and counts that time towards each of
    the three limits, as nothing has been answered yet.
    """
    missing = [name for name in _LIMITS if name not in manifests.revision]
    if missing:
        yield f"{', '.join(missing)} must be set: the shortest counts, and defaults differ"
        return
    whole, start, idle = (manifests.revision[name] for name in _LIMITS)
    requests, cold = replica_settings(manifests).requests, worst_cold_start_s(manifests)
    ours = max(requests.body_timeout_s, requests.request_timeout_s)
    if not ours < start < whole:
        limits = f"responseStartTimeoutSeconds {start}, timeoutSeconds {whole}"
        yield f"must rise: our {ours:g} s, {limits}"
    if idle <= ours:
        yield f"idleTimeoutSeconds ({idle}) must be above our {ours:g} s, in which nothing is sent"
    for name, seconds in (("responseStart", start), ("idle", idle)):
        if seconds < cold:
            yield f"{name}TimeoutSeconds ({seconds}) must last for a cold start of {cold:g} s"


def worst_cold_start_s(manifests: Manifests) -> int:
    """The seconds of a progress-deadline such as 5m300s; its minutes are for tries again."""
    return _progress(manifests)[1]


def drain(manifests: Manifests) -> Iterator[str]:
    """A pod, which has timeoutSeconds to end, can drain twice: first the queue-proxy, then we."""
    settings = replica_settings(manifests)
    process = settings.process
    ours = process.drain_grace_s + process.drain_timeout_s
    if settings.requests.request_timeout_s > process.drain_timeout_s:
        yield "EMBER_DRAIN_TIMEOUT_S must be EMBER_REQUEST_TIMEOUT_S or more: else requests are cut"
    if process.drain_grace_s <= 0:
        yield "EMBER_DRAIN_GRACE_S must be above 0: requests still come after SIGTERM"
    has = manifests.revision.get("timeoutSeconds", 0)
    if QUEUE_PROXY_DRAIN_S + ours >= has:
        yield f"timeoutSeconds ({has}) must exceed {QUEUE_PROXY_DRAIN_S} + {ours:g} s of drain"


def callers(manifests: Manifests) -> Iterator[str]:
    """It is said who may call: without, the process ends, as others can reach a pod's address."""
    settings = replica_settings(manifests)
    if settings.access.auth == "none" and not settings.address.allow_anonymous:
        yield "EMBER_AUTH must be set, or EMBER_ALLOW_ANONYMOUS=true"


def senders(manifests: Manifests) -> Iterator[str]:
    """Where callers say who they are and events are taken in, somebody may send some."""
    settings = replica_settings(manifests)
    events, auth = settings.events, settings.access.auth
    if events.events and auth != "none" and not events.event_senders:
        yield "EMBER_EVENT_SENDERS names nobody, so every event is refused"


def probes(manifests: Manifests) -> Iterator[str]:
    """The first byte comes as early as it can, and loading is not killed."""
    main = manifests.main
    ready = main.get("readinessProbe", {})
    if "startupProbe" in main:
        yield "no startupProbe: the activator then waits for the kubelet"
    if "httpGet" not in ready:
        yield "the readinessProbe must be httpGet: an exec probe hides readiness from the activator"
    if ready.get("periodSeconds") != 1:
        yield "readinessProbe.periodSeconds must be 1"
    if ready.get("initialDelaySeconds"):
        yield "readinessProbe.initialDelaySeconds delays the first request"
    alive = main.get("livenessProbe", {}).get("httpGet", {}).get("path")
    if alive in {None, ready.get("httpGet", {}).get("path")}:
        yield "the livenessProbe must be one that loading does not fail"


def progress(manifests: Manifests) -> Iterator[str]:
    """Knative does not give a start up while we still try."""
    minutes, cold = _progress(manifests)
    ours = replica_settings(manifests).replica.warmup_retry_s
    if not cold:
        yield "progress-deadline must be like 5m300s: minutes to try again, and a cold start"
    if 60 * minutes < 2 * ours:
        yield f"progress-deadline ({minutes} m) must be twice EMBER_WARMUP_RETRY_S ({ours:g} s)"


def _progress(manifests: Manifests) -> tuple[int, int]:
    """The minutes and the seconds of the progress-deadline."""
    text = manifests.annotations.get("serving.knative.dev/progress-deadline", "")
    found = re.fullmatch(r"(\d+)m(\d+)s", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def hardened(manifests: Manifests) -> Iterator[str]:
    """No root, nothing to write to but volumes, no capability, no token."""
    for name, pod, container in manifests.containers:
        has = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
        if name in ROOTS:
            continue
        if has.get("runAsNonRoot") is not True or has.get("runAsUser", 0) == 0:
            yield f"{name}: runAsNonRoot and a runAsUser other than 0 must be set"
        if has.get("readOnlyRootFilesystem") is not True:
            yield f"{name}: readOnlyRootFilesystem must be true"
        if has.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: allowPrivilegeEscalation must be false"
        if has.get("capabilities") != {"drop": ["ALL"]}:
            yield f"{name}: all capabilities must be dropped"
        if has.get("seccompProfile") != {"type": "RuntimeDefault"}:
            yield f"{name}: seccompProfile must be RuntimeDefault"
    accounts = {one["metadata"]["name"]: one for one in manifests.of("ServiceAccount")}
    bound = {one["name"] for each in manifests.of("RoleBinding") for one in each["subjects"]}
    for name, pod in manifests.pods:
        if pod.get("serviceAccountName") in bound:  # it may do something, so it needs one
            continue
        account = accounts.get(pod.get("serviceAccountName"), {})
        mounted = account.get("automountServiceAccountToken", True)
        if pod.get("automountServiceAccountToken", mounted) is not False:
            yield f"{name}: needs no token of the cluster"


def resources(manifests: Manifests) -> Iterator[str]:
    """Memory is not overcommitted, and threads follow from a CPU limit."""
    for container in [*manifests.revision.get("initContainers", []), manifests.main]:
        has = container.get("resources", {})
        requests, most = has.get("requests", {}), has.get("limits", {})
        if not most.get("memory") or requests.get("memory") != most["memory"]:
            yield f"{container['name']}: memory must have a limit, and the same request"
        if not most.get("cpu") or not requests.get("cpu"):
            yield f"{container['name']}: cpu must have a request and a limit"


def store(manifests: Manifests) -> Iterator[str]:
    """The init container fills the store that the main one reads, within the volume's size."""
    volumes = {one["name"]: one for one in manifests.revision.get("volumes", [])}
    used = set()
    for container in [*manifests.revision.get("initContainers", []), manifests.main]:
        folder = manifests.environment(container).get("EMBER_STORE")
        mounts = {one["mountPath"]: one for one in container.get("volumeMounts", [])}
        if folder not in mounts or mounts[folder].get("readOnly"):
            yield f"{container['name']}: EMBER_STORE ({folder}) must be a volume it can write to"
            return
        used.add(mounts[folder]["name"])
    if len(used) != 1:
        yield "the containers must share one store"
    for name in used:
        size = volumes.get(name, {}).get("emptyDir", {}).get("sizeLimit")
        quota = replica_settings(manifests).stores.store_quota
        if size and (quota is None or quota >= quantity(size)):
            yield f"EMBER_STORE_QUOTA must be below the volume's {size}: else the pod is evicted"


def one_release(manifests: Manifests) -> Iterator[str]:
    """What fetches and what serves is the same image with the same settings."""
    containers = [*manifests.revision.get("initContainers", []), manifests.main]
    if len({container["image"] for container in containers}) > 1:
        yield "all containers of a revision must have one image"
    if len({str(container.get("envFrom")) for container in containers}) > 1:
        yield "all containers of a revision must have the same settings"


def kn_can_update(manifests: Manifests) -> Iterator[str]:
    """`kn service update` makes revisions of its own."""
    if "name" in manifests.service["spec"]["template"].get("metadata", {}):
        yield "a fixed revision name makes the next update fail"


def settings_are_kept(manifests: Manifests) -> Iterator[str]:
    """A changed setting is a new ConfigMap, so a revision never changes under its replicas."""
    for one in manifests.of("ConfigMap"):
        if "ember.dev/used-by" in one["metadata"].get("annotations", {}):
            continue  # no replica reads it
        if not re.fullmatch(r".+-[bcdfghkmt2-9]{10}", one["metadata"]["name"]):
            yield f"the name of {one['metadata']['name']} has no hash of its content"


def jobs(manifests: Manifests) -> Iterator[str]:
    """Pings never pile up, and one that hangs is ended."""
    for job in manifests.of("CronJob"):
        name, spec = job["metadata"]["name"], job["spec"]
        if spec.get("concurrencyPolicy") != "Forbid":
            yield f"{name}: concurrencyPolicy must be Forbid"
        if not spec["jobTemplate"]["spec"].get("activeDeadlineSeconds"):
            yield f"{name}: activeDeadlineSeconds must be set"
        if spec["jobTemplate"]["spec"].get("backoffLimit") != 0:
            yield f"{name}: backoffLimit must be 0: a failed ping is a finding, not work to repeat"


CHECKS = (
    one_pod,
    places,
    warm_floor,
    deadlines,
    drain,
    callers,
    senders,
    probes,
    progress,
    hardened,
    resources,
    store,
    one_release,
    kn_can_update,
    settings_are_kept,
    jobs,
)
