"""`ember doctor` on manifests of others; tests/knative proves each rule on our own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keepalive.doctor import fields, shape, webhook
from keepalive.doctor.config import KnativeConfig, read
from keepalive.doctor.doctor import examine
from tests.knative.manifests import KNATIVE, kubectl, render

SERVICE = """
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: swap}
spec:
  template:
    metadata:
      annotations: {autoscaling.knative.dev/min-scale: "1"}
    spec:
      containers:
        - image: registry.example/swap
          env: [{name: A, value: b}]
"""


def service(change=None):
    made = yaml.safe_load(SERVICE)
    if change:
        change(made)
    return made


def revision(**fields):
    return lambda one: one["spec"]["template"]["spec"].update(fields)


def container(**fields):
    return lambda one: one["spec"]["template"]["spec"]["containers"][0].update(fields)


def scaled(**values):
    names = {f"autoscaling.knative.dev/{key.replace('_', '-')}": v for key, v in values.items()}
    return lambda one: one["spec"]["template"]["metadata"]["annotations"].update(names)


def volume(**fields):
    return revision(volumes=[{"name": "v", **fields}])


def another(**fields):
    one = {"image": "registry.example/other", **fields}
    return lambda made: made["spec"]["template"]["spec"]["containers"].append(one)


def on_service(made):
    made["metadata"]["annotations"] = {"autoscaling.knative.dev/min-scale": "1"}


def both(first, second):
    return lambda made: (first(made), second(made))


PORTS = [{"containerPort": 8080}]
PROBE = {"httpGet": {"path": "/"}}
REFUSED = {
    "init containers": revision(initContainers=[{"name": "i", "image": "x"}]),
    "a claim": volume(persistentVolumeClaim={"claimName": "c", "readOnly": True}),
    "a writable claim": volume(persistentVolumeClaim={"claimName": "c"}),
    "a host path": volume(hostPath={"path": "/x"}),
    "an image volume": volume(image={"reference": "x"}),
    "a node selector": revision(nodeSelector={"a": "b"}),
    "tolerations": revision(tolerations=[{"operator": "Exists"}]),
    "affinity": revision(affinity={"nodeAffinity": {}}),
    "topology spread": revision(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ]
    ),
    "a runtime class": revision(runtimeClassName="nvidia"),
    "a security context of the pod": revision(securityContext={"fsGroup": 1}),
    "a priority class": revision(priorityClassName="online"),
    "another scheduler": revision(schedulerName="mine"),
    "a field of the pod": container(
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "probes of two containers": both(
        container(ports=PORTS, readinessProbe=PROBE), another(readinessProbe=PROBE)
    ),
    "two containers with ports": both(container(ports=PORTS), another(ports=PORTS)),
    "privileged": container(securityContext={"privileged": True}),
    "a lifecycle hook": container(lifecycle={"preStop": {"exec": {"command": ["true"]}}}),
    "a grace period": revision(terminationGracePeriodSeconds=60),
    **{
        f"port {port}": container(ports=[{"containerPort": port}])
        for port in (8012, 8013, 8022, 9090, 9091)
    },
    "PORT": container(env=[{"name": "PORT", "value": "1"}]),
    "too long": revision(timeoutSeconds=601),
    "too concurrent": revision(containerConcurrency=1001),
    "an unknown field": revision(timeout=60),
    "min-scale above max-scale": scaled(min_scale="3", max_scale="2"),
    "min-scale that is no number": scaled(min_scale="abc"),
    "initial-scale 0": scaled(initial_scale="0"),
    "cpu with Knative's own autoscaler": scaled(metric="cpu"),
    "an autoscaling annotation on the Service": on_service,
    "a misspelt annotation": scaled(min_scal="1"),
}


def ember(*words, text=None):
    return subprocess.run(
        [sys.executable, "-c", "from function.command import main; main()", *words],
        capture_output=True,
        text=True,
        input=text,
        check=False,
    )


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_what_a_cluster_refuses_is_told_beforehand(change):
    one = service(change)
    told = [*webhook.complaints(one, KnativeConfig()), *webhook.flags(one, KnativeConfig())]
    assert 1 <= len(told) <= 3, told


def test_a_plain_service_is_well():
    assert webhook.complaints(service(), KnativeConfig()) == []
    assert list(webhook.flags(service(), KnativeConfig())) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one.update(spec="x"), "spec must be a mapping"),
        (lambda one: one.update(metadata=[]), "metadata must be a mapping"),
        (revision(containers={}), "containers must be a list"),
        (revision(containers=["x"]), "containers[0] must be a mapping"),
        (revision(containers=[None]), "containers[0] must be a mapping"),
        (container(env="A=b"), "env must be a list"),
        (container(readinessProbe=[]), "readinessProbe must be a mapping"),
        (container(securityContext={"capabilities": ["x"]}), "capabilities must be a mapping"),
    ],
)
def test_what_has_the_wrong_shape_is_told_by_its_path(change, told):
    assert any(told in each for each in webhook.complaints(service(change), KnativeConfig()))


KEYS = [
    *("metadata", "spec", "template", "containers", "annotations", "env", "name", "volumes"),
    *("traffic", "ports", "securityContext", "image", "valueFrom", "timeoutSeconds"),
]
THINGS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(THINGS, THINGS)
def test_nothing_in_a_manifest_breaks_the_examination(metadata, spec):
    one = {"apiVersion": "serving.knative.dev/v1", "kind": "Service"}
    webhook.complaints({**one, "metadata": metadata, "spec": spec}, KnativeConfig())
    webhook.complaints(
        service(lambda made: made["spec"]["template"].update(spec=spec)), KnativeConfig()
    )


def filled(known, value, at=()):
    """(path, Service with `value` at it) for each field that a Service has."""
    if isinstance(known, shape.BehindFlag):
        known = known.kind
    if isinstance(known, shape.Many):
        for path, inner in filled(known.kind, value, at):
            yield path, [inner]
    elif isinstance(known, shape.Fields):
        for key in known.known:
            for path, inner in filled(known.known[key], value, (*at, key)):
                yield path, {key: inner}
    yield at, value


@pytest.mark.parametrize("value", [3, "x", None, True, [3], [None], {"a": 3}, {3: []}, [[]]])
def test_whatever_a_field_has_is_examined(value):
    kind = {"apiVersion": "serving.knative.dev/v1", "kind": "Service"}
    places = list(filled(fields.SERVICE, value))
    assert len(places) > 300
    for path, made in places:
        if path and path[0] not in kind:
            assert examine([{**made, **kind}], KnativeConfig()).findings[0].wrong, path


@pytest.mark.parametrize("data", [5, ["a"], {"max-revision-timeout-seconds": [1]}])
def test_a_configuration_of_another_shape_is_an_error(data):
    with pytest.raises(ValueError, match=r"must be a mapping|is no whole number"):
        read([{"kind": "ConfigMap", "metadata": {"name": "config-defaults"}, "data": data}])


def test_a_cluster_that_allows_more_is_believed():
    config = read(
        [
            {"kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            for name, data in (
                ("config-features", {"kubernetes.podspec-init-containers": "Enabled"}),
                ("config-autoscaler", {"allow-zero-initial-scale": "true"}),
                ("config-defaults", {"max-revision-timeout-seconds": "900"}),
            )
        ]
    )
    one = service(both(revision(timeoutSeconds=900, initContainers=[]), scaled(initial_scale="0")))
    assert webhook.complaints(one, config) == []
    assert list(webhook.flags(one, config)) == []


def test_some_flags_are_on_and_some_want_more_than_allowed():
    given = {"multi-container": "disabled", "kubernetes.podspec-affinity": "Allowed"}
    given |= {"kubernetes.podspec-init-containers": "allowed", "kubernetes.podspec-dnspolicy": "x"}
    config = KnativeConfig(features=given)
    assert config.allows("kubernetes.podspec-volumes-emptydir")
    assert config.allows("kubernetes.podspec-affinity")
    assert not config.allows("multi-container")
    assert not config.allows("kubernetes.podspec-init-containers")
    assert not config.allows("kubernetes.podspec-dnspolicy")
    (told,) = webhook.flags(service(another(args=[])), config)
    assert told.endswith(
        "containers: more than one needs config-features: multi-container: enabled"
    )


def test_defaults_of_the_cluster_count():
    config = read(
        [
            {"kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            for name, data in (
                ("config-autoscaler", {"pod-autoscaler-class": "hpa.autoscaling.knative.dev"}),
                (
                    "config-defaults",
                    {
                        "revision-timeout-seconds": "60",
                        "allow-container-concurrency-zero": "false",
                    },
                ),
            )
        ]
    )
    assert webhook.complaints(service(scaled(metric="cpu")), config) == []
    (told,) = webhook.complaints(service(revision(idleTimeoutSeconds=61)), config)
    assert "idleTimeoutSeconds is above timeoutSeconds, 60" in told
    (told,) = webhook.complaints(service(revision(containerConcurrency=0)), config)
    assert told == "containerConcurrency: 0 is not from 1 to 1000"


def test_a_limit_of_the_cluster_counts():
    data = {"max-scale-limit": "5"}
    config = read([{"kind": "ConfigMap", "metadata": {"name": "config-autoscaler"}, "data": data}])
    told = webhook.complaints(service(scaled(max_scale="6")), config)
    assert told == ["max-scale must be from 1 to 5, the max-scale-limit of the cluster"]
    assert webhook.complaints(service(), config) == []  # the cluster's own max-scale is within it


class TestTheCommand:
    def test_it_names_what_is_wrong_and_exits_with_65(self, tmp_path):
        path = tmp_path / "service.yaml"
        path.write_text(yaml.safe_dump(service(revision(timeoutSeconds=601))))
        done = ember("doctor", str(path))
        assert done.returncode == 65
        assert done.stdout == (
            "Service swap: wrong\n  - spec.template.spec.timeoutSeconds: 601 is not from 1 to 600,"
            " the max-revision-timeout-seconds of the cluster\n"
        )

    def test_it_says_which_flags_to_turn_on_and_how(self, tmp_path):
        done = ember("doctor", "-", text=yaml.safe_dump(service(revision(nodeSelector={"a": "b"}))))
        assert done.returncode == 65
        assert "Service swap: well" in done.stdout
        assert '{"data":{"kubernetes.podspec-nodeselector":"enabled"}}' in done.stdout

    def test_a_kustomization_is_rendered_and_held_against_the_platform(self, tmp_path):
        platform = tmp_path / "platform.yaml"
        platform.write_text(yaml.safe_dump_all(render(KNATIVE / "platform" / "dev")))
        words = ("doctor", str(KNATIVE / "overlays" / "dev"), "--kubectl", kubectl())
        done = ember(*words, "--config", str(platform), "--json")
        assert done.returncode == 0, done.stdout
        assert json.loads(done.stdout)["findings"][0]["name"] == "Service ember"
        done = ember(*words)
        assert done.returncode == 65
        assert "kubernetes.podspec-init-containers" in done.stdout

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("a: [", "standard input: is no YAML"),
            ("- 1", "something else than an object"),
            ("just words", "something else than an object"),
            ("{kind: List, items: [3]}", "something else than an object"),
            ("[" * 5000, "standard input: is nested too deeply"),
            ("day: 2026-99-99", "standard input: is no YAML: month must be"),
        ],
    )
    def test_what_is_no_manifest_is_an_error(self, text, told):
        done = ember("doctor", "-", text=text)
        assert done.returncode == 69
        assert told in done.stderr

    def test_a_file_that_is_not_there_is_an_error(self):
        done = ember("doctor", "nowhere.yaml")
        assert (done.returncode, done.stdout) == (69, "")
        assert done.stderr == "Error: nowhere.yaml: No such file or directory\n"

    def test_a_cluster_that_is_not_there_is_told_in_one_line(self, tmp_path):
        config = tmp_path / "config"
        config.write_text(
            "{apiVersion: v1, kind: Config, current-context: x,"
            " contexts: [{name: x, context: {cluster: x, user: x}}],"
            " clusters: [{name: x, cluster: {server: 'http://127.0.0.1:9'}}],"
            " users: [{name: x, user: {}}]}"
        )
        words = ("--kubectl", f"{kubectl()} --kubeconfig {config}")
        done = ember("doctor", "-", "--cluster", *words, text=SERVICE)
        assert done.returncode == 69
        (line,) = done.stderr.splitlines()
        assert line.startswith("Error: ")
        assert "127.0.0.1:9" in line

    def test_a_cluster_that_cannot_be_asked_is_an_error(self):
        done = ember("doctor", "-", "--cluster", "--kubectl", "no-such-kubectl", text=SERVICE)
        assert done.returncode == 69
        assert "there is no no-such-kubectl; install it" in done.stderr
