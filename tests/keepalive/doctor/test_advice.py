"""What is taken as it is told, and seldom meant: warnings, which leave the exit code alone."""

from __future__ import annotations

import pytest
import yaml

from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from tests.keepalive.doctor.test_doctor import both, container, ember, revision, scaled, service

IDLE = revision(timeoutSeconds=300, responseStartTimeoutSeconds=200, idleTimeoutSeconds=45)
ZERO = scaled(min_scale="0")


def traffic(*entries):
    return lambda one: one["spec"].update(traffic=list(entries))


def ours(**settings):
    return container(
        env=[{"name": f"EMBER_{key}", "value": text} for key, text in settings.items()]
    )


def dropping(*names):
    return container(securityContext={"capabilities": {"drop": list(names)}})


def annotated(name, value):
    return lambda one: one["spec"]["template"]["metadata"]["annotations"].update({name: value})


WARNED = [
    (
        traffic({"revisionName": "swap-1", "percent": 100}),
        "The traffic of swap is pinned to swap-1 by name",
    ),
    (
        traffic({"revisionName": "swap-1", "percent": 100}),
        "gets none of it. `ember rollout --unpin` says how that ends",
    ),
    (
        traffic(
            {"revisionName": "swap-1", "percent": 50, "tag": "stable"},
            {"revisionName": "swap-2", "percent": 50},
            {"latestRevision": True, "percent": 0, "tag": "next"},
        ),
        "kn service update swap --traffic @latest=100",
    ),
    (both(IDLE, ZERO), "a bare 504 after 45 s, not after the 200 s"),
    (both(IDLE, scaled(initial_scale="0")), "a bare 504 after 45 s"),
    (both(revision(idleTimeoutSeconds=45), ZERO), "not after the 300 s"),
    (both(IDLE, lambda one: one["spec"]["template"].pop("metadata")), "a bare 504 after 45 s"),
    (
        both(ours(REQUEST_TIMEOUT_S="60"), revision(responseStartTimeoutSeconds=60)),
        "EMBER_REQUEST_TIMEOUT_S: 60 must be below the 60 s",
    ),
    (
        both(ours(BODY_TIMEOUT_S="31.5"), revision(responseStartTimeoutSeconds=30)),
        "EMBER_BODY_TIMEOUT_S: 31.5 must be below the 30 s",
    ),
    (ours(REQUEST_TIMEOUT_S="300"), "must be below the 300 s"),
    (
        both(
            ours(REQUEST_TIMEOUT_S="20"),
            revision(timeoutSeconds=60, responseStartTimeoutSeconds=60),
        ),
        "responseStartTimeoutSeconds: 60 must be below timeoutSeconds, 60",
    ),
    (
        annotated("autoscaling.knative.dev/minScale", "3"),
        "autoscaling.knative.dev/minScale has no effect beside autoscaling.knative.dev/min-scale",
    ),
    (scaled(scale_to_zero_pod_retention_period="5m"), "has no effect with min-scale 1"),
    (scaled(initial_scale="0"), "initial-scale 0 has no effect with min-scale 1: a new revision"),
    (
        annotated("queue.sidecar.serving.knative.dev/resource-percentage", "20"),
        "is deprecated; write …/cpu-resource-request",
    ),
    (dropping("all"), "capabilities.drop: 'all' drops nothing; write ALL"),
]
SILENT = [
    traffic({"latestRevision": True, "percent": 100}),
    traffic({"latestRevision": True, "percent": 100}, {"revisionName": "swap-1", "tag": "old"}),
    traffic({"revisionName": "swap-1", "percent": 90}, {"latestRevision": True, "percent": 10}),
    IDLE,  # the floor is 1: no request waits for a cold start as a rule
    both(revision(idleTimeoutSeconds=300), ZERO),
    both(revision(idleTimeoutSeconds=0), ZERO),
    ours(REQUEST_TIMEOUT_S="299"),
    ours(REQUEST_TIMEOUT_S="soon"),
    both(ours(REQUEST_TIMEOUT_S="20"), revision(responseStartTimeoutSeconds=60)),
    revision(timeoutSeconds=60, responseStartTimeoutSeconds=60),
    both(ZERO, scaled(scale_to_zero_pod_retention_period="5m")),
    scaled(scale_to_zero_pod_retention_period="0s"),
    dropping("ALL"),
]


@pytest.mark.parametrize(("change", "told"), WARNED, ids=[told for _, told in WARNED])
def test_it_is_warned_of(change, told):
    found = examine([service(change)], KnativeConfig())
    assert found.findings[0].wrong == ()
    assert any(told in each for each in found.findings[0].warned), found.findings[0].warned


@pytest.mark.parametrize("change", SILENT)
def test_it_is_not_warned_of(change):
    assert examine([service(change)], KnativeConfig()).findings[0].warned == ()


def test_settings_of_a_config_map_among_the_manifests_count():
    one = service(container(envFrom=[{"configMapRef": {"name": "settings"}}], env=[]))
    values = {"kind": "ConfigMap", "metadata": {"name": "settings"}}
    values["data"] = {"EMBER_REQUEST_TIMEOUT_S": "400"}
    (told,) = examine([one, values], KnativeConfig()).findings[0].warned
    assert "EMBER_REQUEST_TIMEOUT_S: 400 must be below the 300 s" in told
    assert examine([one, {**values, "data": ["a"]}], KnativeConfig()).findings[0].warned == ()
    assert examine([one, {**values, "data": None}], KnativeConfig()).findings[0].warned == ()


def test_a_cluster_that_never_scales_to_zero_holds_nothing():
    config = KnativeConfig(scales_to_zero=False)
    assert examine([service(both(IDLE, ZERO))], config).findings[0].warned == ()


def test_a_warning_is_told_and_the_command_ends_well():
    text = yaml.safe_dump(service(traffic({"revisionName": "swap-1", "percent": 100})))
    done = ember("doctor", "-", text=text)
    assert done.returncode == 0
    assert done.stdout.startswith(
        "Service swap: well\n  - warning: The traffic of swap is pinned to swap-1"
    )
