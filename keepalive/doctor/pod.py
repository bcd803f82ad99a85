"""What a revision's containers and volumes must be to each other.

From Knative's k8s_validation.go, and for `amounts`, `privileges` and `tolerations` from Kubernetes'
validation of pods, which refuses the Deployment that Knative has already taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.doctor.formats import cleaned, quantity
from keepalive.doctor.view import REVISION, Container, Role, Thing, containers, get, many, revision

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESERVED_PORTS = {8008, 8012, 8013, 8022, 9090, 9091}
_RESERVED_VARIABLES = {"K_SERVICE", "K_CONFIGURATION", "K_REVISION"}
_RESERVED_PATHS = {"/", "/dev", "/dev/log"}
_WRITABLE = {"emptyDir", "persistentVolumeClaim", "ephemeral"}
_HANDLERS = {"httpGet", "tcpSocket", "grpc", "exec"}
_NAMED = ", ".join(sorted(_HANDLERS))
PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


def names(service: Thing) -> Iterator[str]:
    """Names of containers that are taken (validateContainers, validateInitContainers)."""
    seen: set[str] = set()
    for one in containers(revision(service)):
        name = one.given.get("name")
        if name == "queue-proxy":
            yield f"{one.at}.name: queue-proxy is taken by Knative; choose another"
        if name and name in seen:
            yield f"{one.at}.name: {name!r} is there twice; choose another"
        seen.add(name or "")


def ports(service: Thing) -> Iterator[str]:
    """Ports of the one container that serves (validateContainersPorts, validateContainerPorts)."""
    spec = revision(service)
    serving = [one for one in containers(spec) if one.role is not Role.INITIAL]
    having = [one for one in serving if many(one.given, "ports")]
    if len(having) > 1:
        words = ", ".join(one.at for one in having)
        yield f"only one container may have ports, and these have: {words}"
    if len(serving) > 1 and not having:
        yield f"{REVISION}.containers: one of several must have ports: the one that serves"
    for one in containers(spec):
        if one.role is not Role.INITIAL and len(many(one.given, "ports")) > 1:
            yield f"{one.at}.ports: only one port is possible; leave the one that serves"
        for index, port in enumerate(many(one.given, "ports")):
            at = f"{one.at}.ports[{index}]"
            if port.get("containerPort") in _RESERVED_PORTS:
                yield f"{at}: port {port['containerPort']} is the queue-proxy's; choose another"
            if one.role is not Role.INITIAL and port.get("name", "") not in {"", "http1", "h2c"}:
                yield f"{at}: a port is named http1 or h2c, not {port['name']}"


def variables(service: Thing) -> Iterator[str]:
    """Variables that Knative sets itself (validateEnvVar)."""
    for one in containers(revision(service)):
        taken = _RESERVED_VARIABLES | ({"PORT"} if one.role is Role.SERVING else set())
        for index, variable in enumerate(many(one.given, "env")):
            if variable.get("name") in taken:
                yield f"{one.at}.env[{index}]: Knative sets {variable['name']} itself; leave it out"


def mounts(service: Thing) -> Iterator[str]:
    """Volumes and where they are mounted (ValidateVolumes, validateVolumeMounts)."""
    spec = revision(service)
    volumes = {one.get("name"): one for one in many(spec, "volumes")}
    used = {
        mount.get("name") for one in containers(spec) for mount in many(one.given, "volumeMounts")
    }
    for index, name in enumerate(volumes):
        if name and name not in used and many(spec, "containers"):
            yield f"{REVISION}.volumes[{index}]: {name} is not mounted; mount it or leave it out"
    for one in containers(spec):
        seen: set[str] = set()
        for index, mount in enumerate(many(one.given, "volumeMounts")):
            at = f"{one.at}.volumeMounts[{index}]"
            path = cleaned(mount.get("mountPath") or "")
            if path in _RESERVED_PATHS:
                yield f"{at}.mountPath: nothing may be mounted at {path}"
            elif path in seen:
                yield f"{at}.mountPath: something is mounted at {path} already; choose another"
            seen.add(path)
            volume = volumes.get(mount.get("name"))
            if volume is None:
                yield f"{at}.name: there is no volume {mount.get('name')} in {REVISION}.volumes"
            else:
                yield from _read_only(one, at, mount, volume)


def _read_only(one: Container, at: str, mount: Thing, volume: Thing) -> Iterator[str]:
    """Writing to what is there to be read only."""
    kinds = [kind for kind, value in volume.items() if kind != "name" and value is not None]
    if get(volume, "persistentVolumeClaim").get("readOnly") and not mount.get("readOnly"):
        yield f"{at}.readOnly: the volume {mount['name']} is read-only; write readOnly: true"
    # Where it is not said, Knative sets it (RevisionSpec.applyDefault), but not on init containers.
    said = mount.get("readOnly") if one.role is not Role.INITIAL else bool(mount.get("readOnly"))
    if said is False and kinds and not _WRITABLE & set(kinds):
        yield f"{at}.readOnly: a {kinds[0]} can only be read; write readOnly: true"


def probes(service: Thing) -> Iterator[str]:
    """Probes and the ports that they ask (validateProbe, validateReadinessProbe)."""
    for one in containers(revision(service)):
        if one.role is Role.INITIAL:
            continue
        for kind in PROBES:
            yield from _asked(one, kind)
        ready = get(one.given, "readinessProbe")
        if one.role is Role.SIDECAR and ready and not _HANDLERS & set(ready):
            yield f"{one.at}.readinessProbe says nothing to ask; it needs one of {_NAMED}"
        if not ready.get("periodSeconds"):
            for field in ("failureThreshold", "timeoutSeconds"):
                if ready.get(field):
                    yield f"{one.at}.readinessProbe.{field} needs periodSeconds of 1 or more"


def _asked(one: Container, kind: str) -> Iterator[str]:
    """Ports that a probe asks and that are not there."""
    named = (many(one.given, "ports") or [{}])[0].get("name") or "http"
    probe = get(one.given, kind)
    for handler in ("httpGet", "tcpSocket"):
        if probe.get(handler) is None:
            continue
        at, port = f"{one.at}.{kind}.{handler}.port", probe[handler].get("port")
        if one.role is Role.SIDECAR and not port:
            yield f"{at} is missing; only that of the serving container is known"
        elif one.role is Role.SERVING and isinstance(port, str) and port not in {"", named}:
            yield f"{at}: {port!r} is not the port of the container; leave it out"


def amounts(service: Thing) -> Iterator[str]:
    """Requests that fit their limits (Kubernetes: ValidateContainerResourceRequirements)."""
    for one in containers(revision(service)):
        resources = get(one.given, "resources")
        requests, limits = get(resources, "requests"), get(resources, "limits")
        for name in sorted({*requests, *limits}):
            at = f"{one.at}.resources"
            asked, most = quantity(requests.get(name, "")), quantity(limits.get(name, ""))
            extended = "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
            if asked is not None and most is not None and asked > most:
                yield f"{at}.requests.{name}: {requests[name]} is above the limit {limits[name]}"
            elif extended and asked is not None and asked != most:
                yield f"{at}.requests.{name}: it needs a limit that is the same, {requests[name]}"
            if extended and any(one is not None and one % 1 for one in (asked, most)):
                yield f"{at}: {name} comes in whole numbers only"


def privileges(service: Thing) -> Iterator[str]:
    """What a container may do and must not (Kubernetes: ValidateSecurityContext)."""
    for one in containers(revision(service)):
        context = get(one.given, "securityContext")
        at = f"{one.at}.securityContext"
        if context.get("runAsNonRoot") and context.get("runAsUser") == 0:
            yield f"{at}: runAsUser: 0 is root, and runAsNonRoot forbids it"
        added = get(context, "capabilities").get("add") or []
        if context.get("allowPrivilegeEscalation") is False and "SYS_ADMIN" in added:
            yield f"{at}: SYS_ADMIN needs allowPrivilegeEscalation: true"
    for at, context in (
        *((f"{one.at}.", one.given) for one in containers(revision(service))),
        (f"{REVISION}.", revision(service)),
    ):
        profile = get(context, "securityContext", "seccompProfile")
        local = profile.get("type") == "Localhost"
        if profile and local != bool(profile.get("localhostProfile")):
            words = "needs a localhostProfile" if local else "has no localhostProfile"
            yield f"{at}securityContext.seccompProfile: the type {profile.get('type')} {words}"


def tolerations(service: Thing) -> Iterator[str]:
    """Tolerations that say one thing only (Kubernetes: ValidateTolerations)."""
    for index, one in enumerate(many(revision(service), "tolerations")):
        at = f"{REVISION}.tolerations[{index}]"
        exists = one.get("operator") == "Exists"
        if not one.get("key") and not exists:
            yield f"{at}: without a key the operator is Exists"
        if one.get("value") and exists:
            yield f"{at}.value: the operator Exists has none; write Equal"
        if one.get("tolerationSeconds") is not None and one.get("effect") != "NoExecute":
            yield f"{at}.tolerationSeconds: only the effect NoExecute has them"


RULES = (names, ports, variables, mounts, probes, amounts, privileges, tolerations)
