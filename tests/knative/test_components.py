"""Each component, on the base by itself or with those it needs, is what it says at its top."""

from __future__ import annotations

import re
from functools import cache

import pytest

from function.background.events.rules_file import read
from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from keepalive.doctor.pairs import NEEDS
from tests.knative import names, overlay, promises, schemas, security, webhook
from tests.knative.manifests import KNATIVE, ROOT, Manifests, render

COMPONENTS = sorted(path.parent.name for path in KNATIVE.glob("components/*/kustomization.yaml"))
CHECKS = [schemas.form, *webhook.CHECKS, *promises.CHECKS, *security.CHECKS, *names.CHECKS]
WITHOUT_KNATIVE = [schemas.form, promises.hardened, promises.settings_are_kept, names.settings]
WITHOUT_KNATIVE += [*security.CHECKS, names.commands, names.probe_paths, names.images]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    @cache
    def build(name):
        return overlay.built(tmp_path_factory.mktemp(name), [*NEEDS.get(name, ()), name])

    return build


@pytest.mark.parametrize("name", COMPONENTS)
def test_there_is_nothing_to_complain_about(name, built):
    checks = CHECKS if built(name).services else WITHOUT_KNATIVE
    assert [told for check in checks for told in check(built(name))] == []


@pytest.mark.parametrize("name", COMPONENTS)
def test_it_says_at_its_top_what_it_does_needs_and_costs(name):
    text = (KNATIVE / "components" / name / "kustomization.yaml").read_text()
    comment = re.match(r"(#.*\n)+", text)[0]
    for what in ("# What it does: ", "# What it needs: ", "# What it costs: "):
        assert comment.count(what) == 1


@pytest.mark.parametrize("name", COMPONENTS)
def test_it_names_what_the_cluster_has_to_allow_beyond_the_base(name, built):
    text = (KNATIVE / "components" / name / "kustomization.yaml").read_text()
    needs = {need.key for need in examine(built(name).documents, KnativeConfig()).missing}
    own = needs - {"kubernetes.podspec-init-containers"}
    for first in NEEDS.get(name, ()):
        own -= {need.key for need in examine(built(first).documents, KnativeConfig()).missing}
    assert own == set(re.findall(r"kubernetes\.podspec-[a-z-]+|allow-zero-[a-z-]+", text))


def test_the_docs_list_every_component():
    text = (ROOT / "docs" / "deploy.md").read_text()
    assert [name for name in COMPONENTS if f"| `{name}` |" not in text] == []


def test_without_knative_the_containers_are_the_same(built):
    base, plain = built("min-scale").revision, built("qps-hpa")
    (deployment,) = plain.of("Deployment")
    spec = deployment["spec"]["template"]["spec"]
    for container in spec["containers"]:
        for probe in ("readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"].pop("port") == "http1"
    for field in ("initContainers", "containers", "volumes"):
        assert spec[field] == base[field]
    process = promises.load(plain.environment(spec["containers"][0])).process
    ends = process.drain_grace_s + process.drain_timeout_s
    assert spec["terminationGracePeriodSeconds"] > ends
    assert "replicas" not in deployment["spec"]


def test_with_keys_the_ping_has_one_too(tmp_path):
    made = Manifests(render(overlay.kustomization(tmp_path, ["keepalive", "keys"])))
    (job,) = made.of("CronJob")
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert "--header=Authorization: Bearer ${TOKEN}" in container["args"]
    assert container["env"][-1]["valueFrom"]["secretKeyRef"]["name"] == "ember-keepalive"
    assert list(names.commands(made)) == []


def test_a_slice_takes_the_place_of_the_whole_gpu(built):
    limits = built("mig").main["resources"]["limits"]
    assert [name for name in limits if name.startswith("nvidia.com")] == ["nvidia.com/mig-1g.10gb"]


def test_metrics_that_scale_are_metrics_that_are_exported(built):
    exported = set(re.findall(r"`(ember_\w+)`", (ROOT / "docs" / "metrics.md").read_text()))
    (rule,) = [one for one in built("qps-hpa").of("ConfigMap") if "config.yaml" in one["data"]]
    used = set(re.findall(r"ember_\w+", rule["data"]["config.yaml"]))
    assert used
    assert used <= exported


def test_the_rules_of_events_are_read_by_the_code(built, tmp_path):
    (one,) = [one for one in built("eventing").of("ConfigMap") if "events.toml" in one["data"]]
    path = tmp_path / "events.toml"
    path.write_text(one["data"]["events.toml"])
    assert read(path)
