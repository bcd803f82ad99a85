"""One-change variants of the rich Service, each of which Knative or Kubernetes refuses.

A class has changes: (where, what it becomes, what the complaint names; by default the last part of
where). `c.` is the serving container, `s.` the second one, `i.` the init container, `r.` the
specification of the revision, `v.` its volumes, `m.` its metadata, `a.` an annotation of the
autoscaler, `A.` another one, `t.` the traffic. Behind a | is one name, dots and all.
"""

from __future__ import annotations

import copy
import re
from enum import Enum


class Gone(Enum):
    """In a change: the field is taken out."""

    GONE = "gone"


GONE = Gone.GONE

SHORT = {
    "c.": "spec.template.spec.containers.0.",
    "s.": "spec.template.spec.containers.1.",
    "i.": "spec.template.spec.initContainers.0.",
    "r.": "spec.template.spec.",
    "v.": "spec.template.spec.volumes.",
    "m.": "spec.template.metadata.",
    "t.": "spec.traffic.",
}
SCALER = "autoscaling.knative.dev/"


def steps(where):
    """The keys and numbers that lead to a field."""
    if where.startswith("a."):
        return ["spec", "template", "metadata", "annotations", SCALER + where[2:]]
    if where.startswith("A."):
        return ["spec", "template", "metadata", "annotations", where[2:]]
    for short, long in SHORT.items():
        if where.startswith(short):
            where = long + where.removeprefix(short)
            break
    where, bar, name = where.partition("|")
    way = [int(step) if step.isdigit() else step for step in where.split(".")]
    return [*way, name] if bar else way


def changed(service, where, value):
    """A copy with one change; a place at the end of a list is a new item."""
    made = copy.deepcopy(service)
    thing, (*way, last) = made, steps(where)
    for step in way:
        thing = thing[step]
    if value is GONE:
        del thing[last]
    elif isinstance(thing, list) and last == len(thing):
        thing.append(value)
    else:
        thing[last] = value
    return made


def named(where, told=None):
    """What a complaint has to name."""
    return told or str([step for step in steps(where) if isinstance(step, str)][-1])


NO_FIELD = [
    (where + name, value)
    for where in ("c.", "i.")
    for name, value in {
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
        "stdin": True,
        "stdinOnce": True,
        "tty": True,
        "restartPolicy": "Always",
        "volumeDevices": [{"name": "store", "devicePath": "/dev/x"}],
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    }.items()
]
RESERVED_PATHS = ("/", "/dev", "/dev/log", "/dev/", "//")
RESERVED_PORTS = (8008, 8012, 8013, 8022, 9090, 9091)
RESERVED_NAMES = ("PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION")
REQUIRED = "r.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
CLASSES = {
    "fields that Knative never takes": [
        *NO_FIELD,
        ("c.securityContext.procMount", "Unmasked"),
        ("i.securityContext", {"procMount": "Unmasked"}, "procMount"),
        ("c.securityContext.seLinuxOptions", {"level": "s0"}),
        ("c.securityContext.appArmorProfile", {"type": "RuntimeDefault"}),
        ("c.securityContext.windowsOptions", {"hostProcess": True}),
        ("c.securityContext.privileged", True),
        ("c.ports.0.hostPort", 80),
        ("c.ports.0.hostIP", "10.0.0.1"),
        ("i.ports.0.hostPort", 80),
        ("c.resources.claims", [{"name": "gpu"}]),
        ("c.volumeMounts.0.subPathExpr", "$(A)"),
        ("c.volumeMounts.1.recursiveReadOnly", "Enabled"),
        ("i.readinessProbe", {"tcpSocket": {"port": 1}}),
        ("i.livenessProbe", {"tcpSocket": {"port": 1}}),
        ("i.startupProbe", {"tcpSocket": {"port": 1}}),
        ("c.livenessProbe.terminationGracePeriodSeconds", 5),
        ("r.terminationGracePeriodSeconds", 60),
        ("r.activeDeadlineSeconds", 60),
        ("r.restartPolicy", "Always"),
        ("r.nodeName", "node-1"),
        ("r.hostname", "swap"),
        ("r.subdomain", "swap"),
        ("r.priority", 1),
        ("r.preemptionPolicy", "Never"),
        ("r.readinessGates", [{"conditionType": "x"}]),
        ("r.overhead", {"cpu": "1"}),
        ("r.hostUsers", False),
        ("r.setHostnameAsFQDN", True),
        ("r.schedulingGates", [{"name": "x"}]),
        ("r.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]),
        ("r.ephemeralContainers", [{"name": "debug"}]),
        ("r.serviceAccount", "swap"),
        ("r.os", {"name": "linux"}),
        ("r.resources", {"limits": {"cpu": "1"}}),
        ("r.automountServiceAccountToken", True),
        ("r.securityContext.sysctls", [{"name": "a", "value": "b"}]),
        ("r.securityContext.fsGroupChangePolicy", "Always"),
        ("r.securityContext.seLinuxOptions", {"level": "s0"}),
        ("r.securityContext.supplementalGroupsPolicy", "Strict"),
        ("v.0", {"name": "store", "downwardAPI": {"items": []}}, "downwardAPI"),
        ("v.0", {"name": "store", "nfs": {"server": "a", "path": "/"}}, "nfs"),
        ("v.0", {"name": "store", "gitRepo": {"repository": "a"}}, "gitRepo"),
        ("v.2.projected.sources.0", {"clusterTrustBundle": {"path": "a"}}, "clusterTrustBundle"),
        ("t.0.url", "http://swap.example.com"),
        ("t.1.configurationName", "swap"),
    ],
    "misspelt fields": [
        ("spec.templates", {}),
        ("r.timeoutSecond", 3),
        ("r.container", []),
        ("c.argz", []),
        ("i.argz", []),
        ("c.readinessProbe.perioSeconds", 1),
        ("c.readinessProbe.httpGet.paths", "/"),
        ("c.securityContext.runAsRoot", False),
        ("c.resources.limit", {}),
        ("c.env.0.val", "b"),
        ("c.env.1.valueFrom.secretKeyRef.keys", "b"),
        ("c.envFrom.0.configMap", {"name": "a"}),
        ("c.volumeMounts.0.path", "/x"),
        ("c.ports.0.port", 8080),
        ("v.0.emptyDir.size", "1Gi"),
        ("v.1.configMap.item", []),
        ("r.tolerations.0.effects", "NoSchedule"),
        ("r.topologySpreadConstraints.0.skew", 1),
        ("r.affinity.nodeAffinities", {}),
        ("r.dnsConfig.nameserver", []),
        ("t.0.percentage", 3),
        ("metadata.annotation", {}),
    ],
    "what is missing": [
        ("r.containers", GONE),
        ("r.containers", []),
        ("c.image", GONE),
        ("c.image", ""),
        ("i.image", GONE),
        ("c.env.0.name", GONE, "env[0].name"),
        ("c.env.0.name", ""),
        ("c.env.1.valueFrom.secretKeyRef.key", GONE, "secretKeyRef.key"),
        ("c.env.1.valueFrom.secretKeyRef.name", GONE, "secretKeyRef.name"),
        ("c.env.1.valueFrom", {}, "valueFrom"),
        ("c.env.2.valueFrom.fieldRef.fieldPath", GONE, "fieldPath"),
        ("c.env.3.valueFrom.resourceFieldRef.resource", GONE, "resource"),
        ("c.envFrom.0.configMapRef", GONE, "configMapRef"),
        ("c.envFrom.0.configMapRef.name", GONE, "configMapRef.name"),
        ("c.volumeMounts.0.mountPath", GONE, "mountPath"),
        ("c.volumeMounts.0.name", GONE, "name"),
        ("c.readinessProbe.httpGet.httpHeaders.0.name", GONE, "httpHeaders[0].name"),
        ("c.livenessProbe.tcpSocket", GONE, "livenessProbe"),
        ("c.startupProbe.exec.command", GONE, "command"),
        ("c.securityContext.seccompProfile.type", GONE, "type"),
        ("s.readinessProbe.httpGet.port", GONE, "httpGet.port"),
        ("s.readinessProbe", {"periodSeconds": 1}),
        ("s.livenessProbe", {}),
        ("c.ports", GONE, "ports"),
        ("v.0.emptyDir", GONE, "emptyDir"),
        ("v.0.name", GONE, "name"),
        ("v.1.configMap.name", GONE, "configMap.name"),
        ("v.1.configMap.items.0.key", GONE, "key"),
        ("v.1.configMap.items.0.path", GONE, "path"),
        ("v.2.projected.sources.0.serviceAccountToken.path", GONE, "path"),
        ("v.2.projected.sources.1.secret.name", GONE, "secret.name"),
        ("v.2.projected.sources.2.downwardAPI.items.0.path", GONE, "path"),
        ("v.2.projected.sources.2.downwardAPI.items.0.fieldRef", GONE, "fieldRef"),
        ("v.2.projected.sources.0", {}, "sources[0]"),
        ("v.3.persistentVolumeClaim.claimName", GONE, "claimName"),
        ("v.4.hostPath.path", GONE, "path"),
        ("v.5.image.reference", GONE, "reference"),
        ("r.topologySpreadConstraints.0.topologyKey", GONE, "topologyKey"),
        ("r.topologySpreadConstraints.0.whenUnsatisfiable", GONE, "whenUnsatisfiable"),
        ("r.topologySpreadConstraints.0.maxSkew", GONE, "maxSkew"),
        ("metadata.name", GONE, "metadata.name"),
        ("spec.template", GONE, "template"),
    ],
    "the same twice": [
        ("c.env.4", {"name": "A", "value": "c"}, "env[4].name"),
        ("i.env.1", {"name": "PORT", "value": "1"}, "env[1].name"),
        ("v.6", {"name": "store", "emptyDir": {}}, "volumes[6].name"),
        ("c.volumeMounts.1.mountPath", "/store"),
        ("c.volumeMounts.1.mountPath", "/store/"),
        ("c.volumeMounts.1.mountPath", "//store/./"),
        ("i.volumeMounts.1", {"name": "store", "mountPath": "/store"}, "mountPath"),
        ("s.name", "swap"),
        ("i.name", "swap"),
        ("r.initContainers.1", {"name": "fetch", "image": "registry.example/x"}, "name"),
        ("r.imagePullSecrets.1", {"name": "registry"}, "imagePullSecrets[1].name"),
        ("t.1.tag", "next"),
    ],
    "one too many": [
        ("c.readinessProbe.tcpSocket", {"port": 8080}, "readinessProbe"),
        ("c.livenessProbe.exec", {"command": ["true"]}, "livenessProbe"),
        ("c.startupProbe.grpc", {"port": 8080}, "startupProbe"),
        ("c.env.1.valueFrom.configMapKeyRef", {"name": "a", "key": "b"}, "valueFrom"),
        ("c.envFrom.0.secretRef", {"name": "a"}, "envFrom[0]"),
        ("v.0.configMap", {"name": "a"}, "volumes[0]"),
        ("v.4.emptyDir", {}, "volumes[4]"),
        ("v.2.projected.sources.0.secret", {"name": "a"}, "sources[0]"),
        (
            "v.2.projected.sources.2.downwardAPI.items.0.resourceFieldRef",
            {"resource": "limits.cpu"},
            "items[0]",
        ),
        ("c.ports.1", {"containerPort": 8081}, "ports"),
        ("s.ports", [{"containerPort": 8081}], "ports"),
    ],
    "volumes and mounts": [
        ("v.6", {"name": "more", "emptyDir": {}}, "more is not mounted"),
        ("v.6", {"name": "more", "secret": {"secretName": "x"}}, "more is not mounted"),
        ("c.volumeMounts.0.name", "stor", "volumeMounts[0].name"),
        ("i.volumeMounts.0.name", "stor", "volumeMounts[0].name"),
        ("c.volumeMounts.0.mountPath", "store"),
        ("c.volumeMounts.0.mountPath", "./store"),
        *(("c.volumeMounts.0.mountPath", path) for path in RESERVED_PATHS),
        ("i.volumeMounts.0.mountPath", "/dev"),
        ("c.volumeMounts.0.subPath", "/models"),
        ("c.volumeMounts.0.subPath", "../models"),
        ("c.volumeMounts.1.readOnly", False),
        ("c.volumeMounts.3.readOnly", False),
        ("c.volumeMounts.3.readOnly", GONE, "readOnly"),
        ("c.volumeMounts.4.readOnly", False),
        ("c.volumeMounts.5.readOnly", False),
        ("i.volumeMounts.1", {"name": "node", "mountPath": "/node"}, "readOnly"),
        ("i.volumeMounts.1", {"name": "settings", "mountPath": "/settings"}, "readOnly"),
        ("c.volumeMounts.4.mountPropagation", "Bidirectional"),
        ("v.0.name", "Store"),
        ("v.0.emptyDir.medium", "HugePages"),
        ("v.0.emptyDir.sizeLimit", "-1Gi"),
        ("v.0.emptyDir.sizeLimit", "1 GB"),
        ("v.1.configMap.items.0.path", "../a"),
        ("v.1.configMap.items.0.path", "/a"),
        ("v.1.configMap.defaultMode", 512),
        ("v.2.projected.defaultMode", -1),
        ("v.2.projected.sources.0.serviceAccountToken.expirationSeconds", 599),
        ("v.2.projected.sources.0.serviceAccountToken.path", "../token"),
        ("v.2.projected.sources.0.serviceAccountToken.expirationSeconds", "1h"),
        ("v.2.projected.sources.2.downwardAPI.items.0.path", "/labels"),
        ("v.2.projected.sources.2.downwardAPI.items.0.fieldRef.fieldPath", "spec.volumes"),
        ("v.4.hostPath.type", "Folder"),
        ("v.4.hostPath.path", "/var/../etc"),
        ("v.5.image.pullPolicy", "Sometimes"),
        ("v.3.persistentVolumeClaim.claimName", "Data"),
    ],
    "ports and probes": [
        *(("c.ports.0.containerPort", port, f"port {port}") for port in RESERVED_PORTS),
        ("i.ports.0.containerPort", 9091, "port 9091"),
        ("c.ports.0.containerPort", -1),
        ("c.ports.0.containerPort", 65536),
        ("c.ports.0.protocol", "UDP"),
        ("c.ports.0.protocol", "SCTP"),
        ("c.ports.0.protocol", "tcp"),
        ("i.ports.0.protocol", "QUIC"),
        ("c.ports.0.name", "http2", "http1 or h2c"),
        ("c.ports.0.name", "web", "http1 or h2c"),
        ("c.readinessProbe.httpGet.port", "http"),
        ("c.readinessProbe.httpGet.port", "8080"),
        ("c.livenessProbe.tcpSocket.port", "web"),
        ("c.livenessProbe.tcpSocket.port", 70000),
        ("s.livenessProbe.grpc.port", -1),
        ("c.readinessProbe.httpGet.scheme", "https"),
        ("c.readinessProbe.httpGet.httpHeaders.0.name", "X A"),
        ("c.readinessProbe.periodSeconds", GONE, "failureThreshold"),
        ("c.readinessProbe.periodSeconds", 0, "timeoutSeconds"),
        ("c.readinessProbe.periodSeconds", -1),
        ("c.readinessProbe.initialDelaySeconds", -1),
        ("c.readinessProbe.successThreshold", -1),
        ("c.readinessProbe.timeoutSeconds", -1),
        ("c.readinessProbe.failureThreshold", -3),
        ("c.livenessProbe.successThreshold", 2),
        ("c.startupProbe.successThreshold", 2),
        ("c.livenessProbe.periodSeconds", -1),
    ],
    "variables": [
        *(("c.env.0.name", name, name) for name in RESERVED_NAMES),
        ("s.env.0.name", "K_SERVICE", "K_SERVICE"),
        ("i.env.0.name", "K_REVISION", "K_REVISION"),
        ("c.env.0.name", "A=B"),
        ("c.env.0.name", "Ä"),
        ("c.envFrom.0.prefix", "A="),
        ("c.env.0.value", 8080),
        ("c.env.0.value", True),
        ("c.env.2.valueFrom.fieldRef.fieldPath", "spec.nodename"),
        ("c.env.3.valueFrom.resourceFieldRef.divisor", "1 m"),
        ("c.envFrom.0.configMapRef.name", "Settings"),
    ],
    "images": [
        ("c.image", image)
        for image in (
            "registry.example/Swap", "registry.example/swap:v1:v2",
            "registry.example/swap@sha256:123", "registry.example/swap@md5:" + "0" * 64,
            "registry.example/my swap", "registry.example/swap:v 1", "registry.example/",
            "https://registry.example/swap", "x", "registry.example/swap:" + "v" * 129,
            "registry.example/swap@sha256:" + "G" * 64, "registry example.com/swap",
        )
    ],
    "quantities": [
        ("c.resources.limits.memory", "2GB"),
        ("c.resources.limits.memory", "2 Gi"),
        ("c.resources.limits.memory", "two"),
        ("c.resources.limits.memory", ""),
        ("c.resources.limits.memory", True),
        ("c.resources.limits.cpu", "500mc"),
        ("c.resources.limits.cpu", "-1"),
        ("c.resources.requests.cpu", "4"),
        ("c.resources.requests.memory", "3Gi"),
        ("c.resources.limits.gpu", 1),
        ("c.resources.limits.memori", "1Gi"),
        ("c.resources.limits|nvidia.com/gpu", "500m", "nvidia.com/gpu"),
        ("c.resources.requests|nvidia.com/gpu", 2, "nvidia.com/gpu"),
        ("c.resources.requests|amd.com/gpu", 1, "amd.com/gpu"),
    ],
    "what a container may do": [
        ("c.securityContext.runAsUser", -1),
        ("c.securityContext.runAsUser", 2**31),
        ("c.securityContext.runAsGroup", -1),
        ("c.securityContext.runAsGroup", 2**31),
        ("c.securityContext.runAsUser", 0),
        ("r.securityContext.runAsUser", -1),
        ("r.securityContext.fsGroup", -1),
        ("r.securityContext.supplementalGroups", [-1]),
        ("c.securityContext.capabilities.add", ["SYS_ADMIN"], "SYS_ADMIN"),
        ("c.securityContext.seccompProfile.type", "Default"),
        ("c.securityContext.seccompProfile.type", "RuntimeDefault", "localhostProfile"),
        ("c.securityContext.seccompProfile.localhostProfile", GONE, "localhostProfile"),
        ("c.securityContext.seccompProfile.localhostProfile", "/etc/swap.json"),
        ("c.imagePullPolicy", "always"),
        ("c.terminationMessagePolicy", "Fallback"),
    ],
    "names": [
        ("metadata.name", "2swap"),
        ("metadata.name", "Swap"),
        ("metadata.name", "swap_v2"),
        ("metadata.name", "-swap"),
        ("metadata.name", "s" * 64),
        ("metadata.namespace", "Photos"),
        ("metadata.labels.app", "my swap"),
        ("metadata.labels.a b", "x", "a b"),
        ("m.labels.app", "x" * 64),
        ("m.name", "v2"),
        ("m.name", "swapv2"),
        ("m.name", "swap-V2"),
        ("m.name", "swap-2."),
        ("c.name", "queue-proxy"),
        ("s.name", "queue-proxy"),
        ("c.name", "my_swap"),
        ("c.name", "s" * 64),
        ("i.name", "Fetch"),
        ("r.serviceAccountName", "my_swap"),
        ("r.serviceAccountName", "Swap"),
        ("r.nodeSelector.gpu", "l 4"),
        ("apiVersion", "serving.knative.dev/v1alpha1"),
    ],
    "traffic": [
        ("t.0.percent", 91, "spec.traffic"),
        ("t.0.percent", 80, "spec.traffic"),
        ("t.0.percent", GONE, "spec.traffic"),
        ("t.0.percent", 101),
        ("t.0.percent", -1),
        ("t.0.percent", "90"),
        ("t.0.percent", 90.5),
        ("t.0.tag", "1st"),
        ("t.0.tag", "Next"),
        ("t.0.tag", "next_one"),
        ("t.0.tag", "n" * 64),
        ("t.0.revisionName", "swap-v2"),
        ("t.0.latestRevision", False, "latestRevision"),
        ("t.1.latestRevision", True, "latestRevision"),
        ("t.1.revisionName", "swap v1"),
        ("t.1.revisionName", "-swap"),
    ],
    "where pods run": [
        ("r.tolerations.0.effect", "NoRun"),
        ("r.tolerations.0.operator", "Is"),
        ("r.tolerations.0.value", "x"),
        ("r.tolerations.0.tolerationSeconds", 5),
        ("r.tolerations.0", {"value": "x", "effect": "NoSchedule"}, "tolerations[0]"),
        ("r.topologySpreadConstraints.0.maxSkew", 0),
        ("r.topologySpreadConstraints.0.whenUnsatisfiable", "Never"),
        ("r.topologySpreadConstraints.0.nodeTaintsPolicy", "Obey"),
        ("r.dnsPolicy", "Cluster"),
        ("r.runtimeClassName", "NVIDIA"),
        ("r.priorityClassName", "On Line"),
        (f"{REQUIRED}.nodeSelectorTerms.0.matchExpressions.0.operator", "Is"),
    ],
    "limits": [
        ("r.timeoutSeconds", 601),
        ("r.timeoutSeconds", -1),
        ("r.responseStartTimeoutSeconds", 301),
        ("r.responseStartTimeoutSeconds", -1),
        ("r.idleTimeoutSeconds", 301),
        ("r.idleTimeoutSeconds", -1),
        ("r.containerConcurrency", 1001),
        ("r.containerConcurrency", -1),
        ("r.timeoutSeconds", "300"),
        ("r.timeoutSeconds", "5m"),
        ("r.containerConcurrency", 1.5),
    ],
    "values of the autoscaler": [
        *(
            (f"a.{name}", value, name)
            for name, values in {
                "panic-threshold-percentage": ("50", "109.9", "1001", "x"),
                "panic-window-percentage": ("0", "0.5", "101", "ten"),
                "target": ("0", "-1", "0.009", "many", ""),
                "target-utilization-percentage": ("0", "0.9", "101", "70%"),
                "target-burst-capacity": ("-2", "-0.5", "none"),
                "scale-to-zero-pod-retention-period": ("2h", "61m", "-1s", "5"),
                "scale-down-delay": ("61m", "1500ms", "-1s", "15"),
                "window": ("500ms", "0s", "5s", "5999ms", "6500ms", "61m", "60", "1 m"),
                "min-scale": ("-1", "one", "1.5", "6", ""),
                "max-scale": ("-1", "x", "99999999999"),
                "initial-scale": ("-1", "x", "6", "1.0"),
                "activation-scale": ("0", "1", "-2", "two", "6"),
                "metric": ("cpu", "memory", "latency", ""),
                "metric-aggregation-algorithm": ("mean", "Linear"),
                "class": ("vpa.autoscaling.knative.dev", "kpa"),
            }.items()
            for value in values
        ),
        ("a.max-scale", "1", "max-scale"),
        ("a.min-scale", "3", "activation-scale"),
        ("a.min-scale", 1),
    ],
    "other annotations": [
        ("A.serving.knative.dev/progress-deadline", "1500ms", "progress-deadline"),
        ("A.serving.knative.dev/progress-deadline", "-1m", "progress-deadline"),
        ("A.serving.knative.dev/progress-deadline", "600", "progress-deadline"),
        ("A.serving.knative.dev/progress-deadline", "0s", "progress-deadline"),
        ("A.queue.sidecar.serving.knative.dev/cpu-resource-request", "0.5 m", "cpu-resource"),
        ("A.queue.sidecar.serving.knative.dev/memory-resource-limit", "1.5GiB", "memory-resource"),
        ("A.queue.sidecar.serving.knative.dev/resource-percentage", "0.05", "resource-perc"),
        ("A.networking.knative.dev/visible", "x", "visible"),
        ("A.bad name", "x", "bad name"),
        ("A.a/b/c", "x", "a/b/c"),
        ("metadata.annotations", {"serving.knative.dev/rollout-duration": "1500ms"}, "rollout-"),
        ("metadata.annotations", {"serving.knative.dev/rollout-duration": "soon"}, "rollout-"),
        ("metadata.annotations", {"serving.knative.dev/rollout-duration": 60}, "rollout-"),
        ("metadata.annotations", {SCALER + "min-scale": "1"}, "put it under spec.template"),
        ("metadata.annotations", {SCALER + "class": "kpa"}, "put it under spec.template"),
    ],
    "annotations that mean nothing": [
        ("a.min-scal", "1", "did you mean autoscaling.knative.dev/min-scale"),
        ("a.minscale", "1", "minscale"),
        ("a.max_scale", "1", "max_scale"),
        ("a.targets", "1", "targets"),
        ("a.concurrency", "1", "concurrency"),
        ("A.autoscalling.knative.dev/min-scale", "1", "autoscalling"),
        ("A.serving.knative.dev/progress-dead-line", "1m", "progress-dead-line"),
        ("A.serving.knative.dev/rollout-duration", "1m", "metadata.annotations of the Service"),
        (
            "metadata.annotations",
            {"serving.knative.dev/progress-deadline": "1m"},
            "put it under spec.template",
        ),
        (
            "metadata.annotations",
            {"networking.knative.dev/visibility": "cluster-local"},
            "it is a label",
        ),
    ],
}  # fmt: skip


def listed(service):
    """(class, where, what it becomes, what the complaint names) for each change."""
    for title, changes in CLASSES.items():
        for where, value, *told in changes:
            yield title, where, value, named(where, *told)
    yield from typed(service)


def typed(service, at=""):
    """Each value of the Service made one of another type, which must be told by its path."""
    items = service.items() if isinstance(service, dict) else enumerate(service)
    for key, value in items:
        where = f"{at}.{key}".lstrip(".")
        if re.search("kind|knative|apiVersion", where) or "/" in where or "status" in where:
            continue
        path = re.sub(r"\.(\d+)", r"[\1]", where)
        if isinstance(value, dict | list):
            yield "another type", where, "text", path
            yield "another type", where, [] if isinstance(value, dict) else {}, path
            yield from typed(value, where)
        elif isinstance(value, str):
            yield "another type", where, {"a": "b"}, path
        elif isinstance(value, bool):
            yield "another type", where, "yes", path
        elif not where.endswith("port"):
            yield "another type", where, "many", path
