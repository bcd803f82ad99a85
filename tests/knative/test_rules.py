"""Each check refuses the manifest that it is there for."""

from __future__ import annotations

import pytest

from tests.knative import names, promises, schemas, security, webhook
from tests.knative.manifests import quantity, rendered
from tests.knative.test_manifests import CHECKS


def revision(**fields):
    return lambda m: m.revision.update(fields)


def without(*fields):
    return lambda m: [m.revision.pop(field) for field in fields]


def main(**fields):
    return lambda m: m.main.update(fields)


def secured(**fields):
    return lambda m: m.main["securityContext"].update(fields)


def init(**fields):
    return lambda m: m.revision["initContainers"][0].update(fields)


def ready(**fields):
    return lambda m: m.main["readinessProbe"].update(fields)


def alive(**fields):
    return lambda m: m.main["livenessProbe"].update(fields)


def annotated(name, value):
    return lambda m: m.annotations.update({name: value})


def scaled(**values):
    given = {f"autoscaling.knative.dev/{name.replace('_', '-')}": v for name, v in values.items()}
    return lambda m: m.annotations.update(given)


def on_service(name, value):
    return lambda m: m.service["metadata"].setdefault("annotations", {}).update({name: value})


def named(name):
    return lambda m: m.service["metadata"].update(name=name)


def traffic(*entries):
    return lambda m: m.service["spec"].update(traffic=list(entries))


def events_of_nobody(manifests):
    for name, value in (
        ("EMBER_EVENTS", "/etc/ember/events/events.toml"),
        ("EMBER_AUTH", "keys"),
        ("EMBER_KEYS", "/etc/ember/keys/keys"),
    ):
        setting(name, value)(manifests)


def setting(name, value):
    return lambda m: m.of("ConfigMap")[0]["data"].update({name: value})


def variable(name, **source):
    return main(env=[{"name": name, **source}])


def pinger(**fields):
    return lambda m: m.of("CronJob")[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"][
        "containers"
    ][0].update(fields)


def volume(**fields):
    return lambda m: m.revision["volumes"].append({"name": "more", **fields})


def port(number, name="http1"):
    return main(ports=[{"containerPort": number, "name": name}])


def amounts(kind, **values):
    return lambda m: m.main["resources"][kind].update(values)


def second(**fields):
    one = {"name": "second", "image": "x", **fields}
    return lambda m: m.revision["containers"].append(one)


def job(**fields):
    return lambda m: m.of("CronJob")[0]["spec"].update(fields)


def one_job(**fields):
    return lambda m: m.of("CronJob")[0]["spec"]["jobTemplate"]["spec"].update(fields)


def account(**fields):
    return lambda m: m.of("ServiceAccount")[0].update(fields)


def exec_probe(m):
    m.main["readinessProbe"] = {"exec": {"command": ["true"]}, "periodSeconds": 1}


def other_store(m):
    m.revision["initContainers"][0]["volumeMounts"] = [{"name": "more", "mountPath": "/store"}]


def labelled(level):
    name = "pod-security.kubernetes.io/enforce"
    return lambda m: m.of("Namespace")[0]["metadata"]["labels"].update({name: level})


def on_the_node(m):
    volume(hostPath={"path": "/x"})(m)
    m.main["volumeMounts"].append({"name": "more", "mountPath": "/x"})


def secret_in(word):
    source = {"secretKeyRef": {"name": "x", "key": "y"}}
    return main(args=["serve", word], env=[{"name": "KEY", "valueFrom": source}])


def policy(**spec):
    types = ["Ingress", "Egress"]
    made = {"kind": "NetworkPolicy", "spec": {"podSelector": {}, "policyTypes": types, **spec}}
    return lambda m: m.documents.append(made)


def plain_name(m):
    m.of("ConfigMap")[0]["metadata"]["name"] = "ember-settings"


def named_revision(m):
    m.service["spec"]["template"]["metadata"]["name"] = "ember-v1"


BROKEN = [
    # the form
    (schemas.form, revision(timeoutSecond=60), "timeoutSecond is unknown"),
    (schemas.form, revision(timeoutSeconds="60"), "valid integer"),
    (schemas.form, main(argz=[]), "argz is unknown"),
    (schemas.form, main(args="serve"), "valid list"),
    (schemas.form, ready(perioSeconds=1), "perioSeconds is unknown"),
    (schemas.form, init(argz=[]), "'argz' was unexpected"),
    (schemas.form, init(args="prefetch"), "not of type 'array'"),
    (schemas.form, secured(runAsRoot=False), "runAsRoot is unknown"),
    (schemas.form, revision(tolerations=[{"effects": "NoSchedule"}]), "'effects' was unexpected"),
    (schemas.form, annotated("a", 1), "valid string"),
    (schemas.form, amounts("limits", memory="1 GB"), "pattern"),
    (schemas.form, job(schedules="* * * * *"), "'schedules' was unexpected"),
    (schemas.form, account(automountServiceAccountToken="no"), "not of type 'boolean'"),
    (schemas.form, setting("EMBER_OFFLINE", True), "not of type 'string'"),
    (webhook.form, revision(timeoutSecond=60), "timeoutSecond is unknown"),
    (webhook.form, revision(timeoutSeconds="60"), "'60' is no whole number"),
    (webhook.form, main(argz=[]), "containers[0].argz is unknown"),
    (webhook.form, ready(perioSeconds=1), "readinessProbe.perioSeconds is unknown"),
    (webhook.form, main(image=""), "containers[0].image is missing"),
    (webhook.form, annotated("a", 1), "a: 1 must be a string"),
    (webhook.form, without("containers"), "containers is missing"),
    (webhook.form, named("Ember"), "'Ember' is no DNS label"),
    (webhook.form, named("ember-" * 11), "is no DNS label"),
    (webhook.names, lambda m: m.service["spec"]["template"]["metadata"].update(name="v1"), "begin"),
    (webhook.names, traffic({"latestRevision": True, "percent": 90}), "must add up to 100"),
    (
        webhook.names,
        traffic({"percent": 100, "latestRevision": False}),
        "either a revisionName or latestRevision",
    ),
    # what means nothing
    (webhook.annotated, scaled(min_scal="1"), "min-scal means nothing on a revision"),
    (webhook.annotated, scaled(minscale="1"), "minscale means nothing"),
    (webhook.annotated, annotated("autoscaling.knative.dev/targets", "1"), "targets means"),
    (webhook.annotated, annotated("serving.knative.dev/progres-deadline", "9s"), "progres-"),
    (webhook.annotated, annotated("autoscaling.knative.dev/rollout-duration", "9s"), "rollout"),
    (webhook.annotated, on_service("autoscaling.knative.dev/min-scale", "1"), "on a Service"),
    (webhook.annotated, on_service("serving.knative.dev/rollout", "1s"), "rollout means nothing"),
    (webhook.annotated, scaled(min_scale="abc"), "'abc' is not possible"),
    (webhook.annotated, scaled(min_scale="-1"), "'-1' is not possible"),
    (webhook.flags, scaled(initial_scale="0"), "config-autoscaler: allow-zero-initial-scale"),
    (webhook.annotated, scaled(activation_scale="1"), "'1' is not possible"),
    (webhook.annotated, scaled(target_utilization_percentage="0"), "'0' is not possible"),
    (webhook.annotated, scaled(target_utilization_percentage="101"), "'101' is not possible"),
    (webhook.annotated, scaled(target_burst_capacity="-2"), "'-2' is not possible"),
    (webhook.annotated, scaled(window="60"), "'60' is not possible"),
    (webhook.annotated, scaled(**{"class": "kpa"}), "'kpa' is not possible"),
    (webhook.annotated, annotated("serving.knative.dev/progress-deadline", "1500ms"), "1500ms"),
    # what contradicts itself
    (webhook.scale, scaled(min_scale="9"), "min-scale is above max-scale"),
    (webhook.scale, scaled(min_scale="3", activation_scale="2"), "below min-scale"),
    (webhook.scale, scaled(metric="cpu"), "the metric cpu needs the class hpa"),
    (webhook.scale, scaled(**{"class": "hpa.autoscaling.knative.dev"}), "needs the class kpa"),
    (webhook.annotated, scaled(scale_down_delay="61m"), "from 0s to 1h"),
    (webhook.annotated, scaled(window="5s"), "from 6s to 1h"),
    (webhook.limits, revision(timeoutSeconds=601), "not from 1 to 600"),
    (webhook.limits, revision(timeoutSeconds=-1), "not from 1 to 600"),
    (webhook.limits, revision(responseStartTimeoutSeconds=601), "above timeoutSeconds"),
    (webhook.limits, revision(idleTimeoutSeconds=601), "above timeoutSeconds"),
    (webhook.limits, revision(containerConcurrency=1001), "not from 0 to 1000"),
    (webhook.limits, revision(containerConcurrency=-1), "not from 0 to 1000"),
    # what is refused
    (webhook.form, main(lifecycle={"preStop": {"sleep": {"seconds": 5}}}), "lifecycle"),
    (webhook.form, revision(terminationGracePeriodSeconds=60), "terminationGracePeriod"),
    (webhook.refused, second(ports=[{"containerPort": 81}]), "only one container may have ports"),
    (webhook.refused, main(ports=[{"containerPort": 1}, {"containerPort": 2}]), "only one port"),
    (webhook.form, secured(privileged=True), "privileged is refused"),
    *((webhook.refused, port(n), f"port {n} is") for n in (8012, 8013, 8022, 9090, 9091)),
    (webhook.refused, port(8080, "http"), "named http1 or h2c"),
    (webhook.refused, variable("PORT", value="8080"), "sets PORT itself"),
    (webhook.refused, variable("K_REVISION", value="x"), "sets K_REVISION itself"),
    (webhook.refused, main(name="queue-proxy"), "is taken"),
    (webhook.refused, main(volumeMounts=[{"name": "store", "mountPath": "/dev"}]), "at /dev"),
    (webhook.refused, main(volumeMounts=[{"name": "x", "mountPath": "/x"}]), "no volume x"),
    (webhook.refused, init(ports=[{"containerPort": 8012}]), "port 8012 is"),
    (webhook.form, init(readinessProbe={}), "an init container is not asked"),
    # what needs a flag
    *(
        (
            webhook.flags,
            revision(**{field: value}),
            f"needs config-features: kubernetes.podspec-{flag}:",
        )
        for field, value, flag in (
            ("nodeSelector", {"a": "b"}, "nodeselector"),
            ("tolerations", [{"key": "nvidia.com/gpu"}], "tolerations"),
            ("affinity", {}, "affinity"),
            ("topologySpreadConstraints", [], "topologyspreadconstraints"),
            ("runtimeClassName", "nvidia", "runtimeclassname"),
            ("securityContext", {"fsGroup": 1}, "securitycontext"),
            ("priorityClassName", "online", "priorityclassname"),
            ("schedulerName", "other", "schedulername"),
        )
    ),
    (
        webhook.flags,
        lambda m: m.platform.clear(),
        "needs config-features: kubernetes.podspec-init-containers",
    ),
    (webhook.flags, volume(hostPath={"path": "/x"}), "podspec-volumes-hostpath"),
    (webhook.flags, volume(image={"reference": "x"}), "podspec-volumes-image"),
    (webhook.flags, volume(persistentVolumeClaim={"claimName": "x"}), "persistent-volume-claim"),
    (webhook.flags, volume(persistentVolumeClaim={"claimName": "x"}), "persistent-volume-write"),
    (webhook.flags, variable("A", valueFrom={"fieldRef": {}}), "podspec-fieldref"),
    (webhook.flags, secured(capabilities={"add": ["SYS_PTRACE"]}), "addcapabilities"),
    (webhook.flags, second(livenessProbe={"exec": {"command": ["x"]}}), "multi-container-prob"),
    (webhook.idle_flags, without("initContainers"), "nothing needs kubernetes.podspec-init-"),
    # what we promise
    (promises.one_pod, revision(containerConcurrency=1), "starts several pods: 1 places at 75 %"),
    (promises.one_pod, scaled(target="1"), "starts several pods"),
    (promises.one_pod, scaled(target_utilization_percentage="20"), "starts several pods"),
    (promises.one_pod, revision(containerConcurrency=0), "must be set"),
    (promises.places, revision(containerConcurrency=10), "must be 4: 2 threads"),
    (promises.places, setting("EMBER_THREADS", "4"), "must be 8"),
    (promises.places, amounts("limits", cpu="3500m"), "must be 8"),
    (promises.warm_floor, scaled(min_scale="0"), "min-scale must be 1"),
    (promises.warm_floor, scaled(min_scale="2"), "initial-scale must be min-scale"),
    (
        promises.warm_floor,
        scaled(initial_scale="0", target_burst_capacity="-1"),
        "initial-scale must be min-scale",
    ),
    (promises.warm_floor, scaled(max_scale="0"), "max-scale must be set"),
    (promises.deadlines, without("idleTimeoutSeconds"), "idleTimeoutSeconds must be set"),
    (promises.deadlines, without("responseStartTimeoutSeconds"), "must be set"),
    (promises.deadlines, setting("EMBER_BODY_TIMEOUT_S", "300"), "must rise: our 300 s, respons"),
    (promises.deadlines, setting("EMBER_REQUEST_TIMEOUT_S", "700"), "must rise: our 700 s"),
    (promises.deadlines, revision(responseStartTimeoutSeconds=600), "must rise: our 25 s, respons"),
    (promises.deadlines, revision(idleTimeoutSeconds=25), "must be above our 25 s"),
    (promises.deadlines, revision(idleTimeoutSeconds=299), "idleTimeoutSeconds (299) must last"),
    (promises.deadlines, revision(responseStartTimeoutSeconds=299), "(299) must last for a cold"),
    (
        promises.deadlines,
        annotated("serving.knative.dev/progress-deadline", "5m301s"),
        "idleTimeoutSeconds (300) must last for a cold start of 301 s",
    ),
    (promises.drain, revision(timeoutSeconds=60), "must exceed 30 + 30 s"),
    (promises.drain, setting("EMBER_DRAIN_TIMEOUT_S", "565"), "must exceed 30 + 570 s"),
    (promises.drain, setting("EMBER_DRAIN_GRACE_S", "0"), "must be above 0"),
    (promises.drain, setting("EMBER_REQUEST_TIMEOUT_S", "30"), "else requests are cut"),
    (promises.callers, setting("EMBER_ALLOW_ANONYMOUS", "false"), "EMBER_AUTH must be set"),
    (promises.senders, events_of_nobody, "EMBER_EVENT_SENDERS names nobody"),
    (promises.probes, main(startupProbe={"httpGet": {"path": "/healthz"}}), "no startupProbe"),
    (promises.probes, exec_probe, "must be httpGet"),
    (promises.probes, ready(periodSeconds=10), "must be 1"),
    (promises.probes, ready(periodSeconds=None), "must be 1"),
    (promises.probes, ready(initialDelaySeconds=5), "delays the first request"),
    (promises.probes, alive(httpGet={"path": "/readyz"}), "loading does not fail"),
    (promises.progress, annotated("serving.knative.dev/progress-deadline", "3m300s"), "(3 m)"),
    (promises.progress, annotated("serving.knative.dev/progress-deadline", "600s"), "like 5m300s"),
    (promises.progress, setting("EMBER_WARMUP_RETRY_S", "400"), "(400 s)"),
    (promises.hardened, secured(runAsNonRoot=False), "ember/ember: runAsNonRoot"),
    (promises.hardened, secured(runAsUser=0), "runAsUser other than 0"),
    (promises.hardened, secured(readOnlyRootFilesystem=False), "readOnlyRootFilesystem"),
    (promises.hardened, secured(allowPrivilegeEscalation=True), "allowPrivilegeEscalation"),
    (promises.hardened, secured(capabilities={"drop": ["NET_RAW"]}), "all capabilities"),
    (promises.hardened, secured(seccompProfile={"type": "Unconfined"}), "seccompProfile"),
    (promises.hardened, init(securityContext={}), "ember/prefetch: readOnlyRootFilesystem"),
    (promises.hardened, pinger(securityContext={}), "ember-keepalive/ping: all capabilities"),
    (promises.hardened, account(automountServiceAccountToken=True), "needs no token"),
    (promises.hardened, revision(serviceAccountName="default"), "needs no token"),
    (promises.resources, amounts("limits", memory="8Gi"), "ember: memory must have a limit"),
    (promises.resources, init(resources={}), "prefetch: memory must have a limit"),
    (promises.resources, lambda m: m.main["resources"]["limits"].pop("cpu"), "ember: cpu"),
    (promises.store, setting("EMBER_STORE", "/models"), "/models) must be a volume"),
    (promises.store, init(volumeMounts=[]), "prefetch: EMBER_STORE (/store) must be a volume"),
    (promises.store, other_store, "share one store"),
    (promises.store, setting("EMBER_STORE_QUOTA", "5G"), "must be below the volume's 256Mi"),
    (promises.one_release, init(image="dev.local/ember:gpu"), "must have one image"),
    (promises.one_release, init(envFrom=[]), "must have the same settings"),
    (promises.kn_can_update, named_revision, "fixed revision name"),
    (promises.settings_are_kept, plain_name, "ember-settings has no hash"),
    (promises.jobs, job(concurrencyPolicy="Allow"), "must be Forbid"),
    (promises.jobs, one_job(activeDeadlineSeconds=None), "activeDeadlineSeconds"),
    (promises.jobs, one_job(backoffLimit=6), "backoffLimit must be 0"),
    # security
    (security.restricted, secured(runAsNonRoot=False), "ember/ember: runAsNonRoot must be true"),
    (security.restricted, secured(runAsUser=0), "ember/ember: runAsNonRoot must be true"),
    (security.restricted, secured(allowPrivilegeEscalation=None), "allowPrivilegeEscalation"),
    (security.restricted, secured(capabilities={"drop": ["NET_RAW"]}), "must be dropped"),
    (
        security.restricted,
        secured(capabilities={"drop": ["ALL"], "add": ["SYS_PTRACE"]}),
        "no capability may be added",
    ),
    (security.restricted, secured(seccompProfile={"type": "Unconfined"}), "seccompProfile"),
    (security.restricted, secured(procMount="Unmasked"), "procMount"),
    (security.restricted, revision(hostNetwork=True), "hostNetwork is the node's"),
    (security.restricted, volume(nfs={"server": "x", "path": "/"}), "of the kind nfs"),
    (security.restricted, main(ports=[{"containerPort": 1, "hostPort": 1}]), "hostPort"),
    (security.restricted, volume(hostPath={"path": "/x"}), "the namespace is held to restricted"),
    (security.restricted, labelled("baseline"), "the namespace is held to baseline"),
    (security.restricted, labelled("privileged"), "the namespace is held to privileged"),
    (security.restricted, on_the_node, "a folder of the node must be mounted readOnly"),
    (security.secrets, secret_in("--key=$(KEY)"), "KEY, a secret, is put into its arguments"),
    (security.secrets, secret_in("a $(A) $(KEY)"), "KEY, a secret"),
    (security.pinned, second(image="redis:7.4"), "redis:7.4 is not in knative/images"),
    (security.pinned, second(image="docker.io/library/redis:8"), "is not in knative/images"),
    (
        security.pinned,
        second(image=f"docker.io/library/redis:7.4@sha256:{'1' * 64}"),
        "is not the one that is pinned",
    ),
    (security.closed, lambda m: None, "there must be a policy for all pods"),
    (security.closed, policy(egress=[{"ports": [{"port": 443}]}]), "egress names nobody"),
    (security.closed, policy(ingress=[{"ports": [{"port": 80}]}]), "ingress names nobody"),
    # names
    (names.settings, setting("EMBER_STOR", "/store"), "EMBER_STOR"),
    (names.settings, setting("EMBER_DRAIN_GRACE_S", "5s"), "EMBER_DRAIN_GRACE_S"),
    (names.settings, pinger(env=[{"name": "EMBER_PING", "value": "1"}]), "EMBER_PING"),
    (names.commands, main(args=["server"]), "there is no command server"),
    (names.commands, main(args=["serve", "--port=80"]), "No such option"),
    (names.commands, main(command=["sh"]), "replaces the image's program"),
    (names.commands, init(args=["fetch"]), "ember/prefetch: there is no command fetch"),
    (names.commands, pinger(args=["ping", "--max-latenc=5"]), "No such option"),
    (names.commands, pinger(args=["ping", "--timeout=soon"]), "is not a valid float"),
    (names.commands, pinger(args=["prefetch"]), "there is no command prefetch"),
    (names.probe_paths, ready(httpGet={"path": "/ready"}), "nothing answers GET /ready"),
    (names.probe_paths, alive(httpGet={"path": "/v1/swap"}), "nothing answers GET /v1/swap"),
    (names.ports, setting("EMBER_PORT", "8000"), "it listens on 8000, not on 8080"),
    (names.images, main(image="dev.local/ember:cup"), "cup is no target"),
    (names.images, main(image="ember"), "no overlay says which image"),
]


@pytest.mark.parametrize(
    ("check", "change", "told"), BROKEN, ids=[f"{c.__name__}: {told}" for c, _, told in BROKEN]
)
def test_a_broken_manifest_is_refused(check, change, told):
    complaints = list(check(rendered("overlays/dev").changed(change)))
    assert any(told in complaint for complaint in complaints), complaints


def test_every_check_is_proven():
    proven = {check for check, _, _ in BROKEN}
    assert {*CHECKS, security.closed} <= proven


def test_quantities_are_read_as_kubernetes_reads_them():
    written = ["2", 2, "250m", "1Gi", "64Mi", "4G", "10k", "0.5"]
    assert [quantity(text) for text in written] == [2, 2, 0.25, 2**30, 2**26, 4e9, 1e4, 0.5]
