"""`make render`, `diff`, `deploy`, `undeploy` and `platform`, with the real kubectl."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
import yaml

from tests.knative.cluster import running
from tests.knative.manifests import ROOT, kubectl, rendered
from tests.running import running as serving

DIGEST = "registry.example:5000/ember@sha256:" + "0" * 64


def make(target, *variables, **environ):
    return subprocess.run(
        ["make", "--silent", target, f"KUBECTL={kubectl()}", "PING=", *variables],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def images(text):
    words = [line.strip() for line in text.splitlines()]
    return {word.removeprefix("image: ") for word in words if word.startswith("image: ")}


class TestRender:
    def test_without_variables_it_is_the_overlay(self):
        done = make("render")
        assert list(yaml.safe_load_all(done.stdout)) == rendered("overlays/dev").documents

    def test_an_image_is_put_into_every_container_as_it_is_given(self):
        done = make("render", f"IMAGE={DIGEST}", "KEEPALIVE_IMAGE=other/keepalive:2")
        assert images(done.stdout) == {DIGEST, "other/keepalive:2"}
        assert images(make("render", IMAGE=DIGEST).stdout) == {DIGEST, "dev.local/ember:keepalive"}

    @pytest.mark.parametrize("overlay", ["gpu-small", "gpu-production", "tidal"])
    def test_what_is_not_built_here_keeps_its_image(self, overlay):
        words = (f"OVERLAY={overlay}", f"IMAGE={DIGEST}", f"KEEPALIVE_IMAGE={DIGEST}")
        words += ("MODELS=embedded",)
        found = images(make("render", *words).stdout.replace("- image:", "image:"))
        assert DIGEST in found
        assert not any("ember@" in image for image in found - {DIGEST})

    def test_a_namespace_is_used_everywhere(self):
        documents = list(yaml.safe_load_all(make("render", "NAMESPACE=photos").stdout))
        spaces = {one["metadata"].get("namespace", one["metadata"]["name"]) for one in documents}
        assert spaces == {"photos"}

    def test_an_overlay_that_does_not_exist_is_named_with_those_that_do(self):
        done = make("render", "OVERLAY=prod")
        assert done.returncode == 2
        assert (
            "There is no overlay prod; there are: dev gpu-production gpu-small tidal" in done.stderr
        )


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """kubectl's context is a stand-in for a cluster."""
    with running() as cluster:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": cluster.url}}],
            "users": [{"name": "x", "user": {}}],
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        monkeypatch.setenv("HOME", str(tmp_path))  # kubectl keeps what it discovers there
        yield cluster


@pytest.mark.slow
class TestDeploy:
    def test_it_applies_waits_and_prints_the_address(self, cluster):
        assert make("platform").returncode == 0
        done = make("deploy", f"IMAGE={DIGEST}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "http://ember.ember.example.com"
        kinds = {one["kind"] for one in cluster.objects.values()}
        assert kinds == {"Namespace", "ServiceAccount", "ConfigMap", "CronJob"}
        assert images(yaml.safe_dump(cluster.service()["spec"])) == {DIGEST}

    def test_what_is_deployed_is_asked_for_a_swap(self, cluster):
        make("platform")
        with serving() as server:
            cluster.knative.address = server.url
            done = make("deploy", "PING=--swap --timeout=45")
        assert done.returncode == 0, done.stderr
        assert "swapped" in done.stdout.splitlines()[-1]

    def test_a_swap_that_nobody_answers_is_a_deployment_that_failed(self, cluster):
        make("platform")
        cluster.knative.address = "http://127.0.0.1:9"
        done = make("deploy", "PING=--swap --timeout=1")
        assert done.returncode == 2
        assert "http://127.0.0.1:9" in done.stderr

    def test_undeployed_only_what_was_not_deployed_is_left(self, cluster):
        make("platform")
        make("deploy")
        done = make("undeploy")
        assert done.returncode == 0, done.stderr
        assert cluster.get("/apis/serving.knative.dev/v1/namespaces/ember/services/ember") is None
        kinds = [one["kind"] for one in cluster.objects.values()]
        assert sorted(kinds) == ["ConfigMap", "Namespace"]  # Knative's own, and where it was
        assert make("undeploy").returncode == 0

    def test_again_it_changes_nothing(self, cluster):
        make("platform")
        make("deploy")
        calls = list(cluster.calls)
        again = make("deploy")
        assert again.returncode == 0, again.stderr
        assert (cluster.calls, len(cluster.revisions)) == (calls, 1)

    def test_another_image_is_a_new_revision(self, cluster):
        make("platform")
        make("deploy")
        assert make("deploy", f"IMAGE={DIGEST}").returncode == 0
        assert len(cluster.revisions) == 2

    def test_without_the_flag_it_says_what_to_do(self, cluster):
        done = make("deploy")
        assert done.returncode == 2
        assert "initContainers" in done.stderr
        assert "make platform OVERLAY=dev, once for each cluster" in done.stderr

    def test_the_platform_keeps_what_others_have_set(self, cluster):
        make("platform")
        assert cluster.features.keys() == {
            "_example",
            "kubernetes.podspec-fieldref",
            "kubernetes.podspec-init-containers",
        }

    def test_diff_before_the_first_deploy_shows_that_all_of_it_is_new(self, cluster, needs):
        needs("diff")
        make("platform")
        calls = list(cluster.calls)
        done = make("diff", f"IMAGE={DIGEST}")
        assert done.returncode == 0, done.stderr
        assert "all of this is new" in done.stdout
        assert f"+         image: {DIGEST}" in done.stdout
        assert cluster.calls == calls

    def test_diff_without_the_account_alone_says_what_makes_it(self, cluster, needs):
        needs("diff")
        make("platform")
        make("deploy")
        cluster.delete("/api/v1/namespaces/ember/serviceaccounts/ember")
        done = make("diff", f"IMAGE={DIGEST}")
        assert done.returncode == 2
        assert 'serviceaccount "ember" not found' in done.stderr
        assert "make deploy makes it before the Service" in done.stderr

    def test_diff_shows_what_would_change_and_changes_nothing(self, cluster, needs):
        needs("diff")
        make("platform")
        make("deploy")
        same = make("diff")
        assert (same.returncode, same.stdout) == (0, ""), same.stderr
        calls = list(cluster.calls)
        other = make("diff", f"IMAGE={DIGEST}")
        assert other.returncode == 0, other.stderr
        assert f"+        image: {DIGEST}" in other.stdout
        assert cluster.calls == calls


def annotated(**scaling):
    found = {f"autoscaling.knative.dev/{k.replace('_', '-')}": v for k, v in scaling.items()}
    return {"metadata": {"annotations": found}}


def traffic(cluster):
    return {one["revisionName"]: one["percent"] for one in cluster.service()["status"]["traffic"]}


PINNED = {"spec": {"traffic": [{"revisionName": "ember-00001", "percent": 100}]}}


@pytest.mark.slow
class TestWhatServesNow:
    @pytest.fixture(autouse=True)
    def deployed(self, cluster):
        make("platform")
        make("deploy")

    def initial(self, cluster):
        last = cluster.revisions[-1]
        return last["metadata"]["annotations"]["autoscaling.knative.dev/initial-scale"]

    def test_the_new_revision_starts_with_as_many_replicas(self, cluster):
        cluster.patch("revisions", "ember-00001", annotated(min_scale="2"))
        done = make("deploy", f"IMAGE={DIGEST}")
        assert done.returncode == 0, done.stderr
        assert "starts with 2 replicas" in done.stderr
        assert self.initial(cluster) == "2"
        assert cluster.revisions[-1]["status"]["actualReplicas"] == 2
        assert traffic(cluster) == {"ember-00002": 100}

    def test_applied_again_it_makes_no_other_revision_for_that(self, cluster):
        cluster.patch("revisions", "ember-00001", annotated(min_scale="2"))
        words = ("deploy", f"IMAGE={DIGEST}")
        make(*words)
        cluster.patch("revisions", "ember-00002", annotated(min_scale="1"))
        again = make(*words)
        assert again.returncode == 0, again.stderr
        assert len(cluster.revisions) == 2

    def test_it_can_be_told_how_many_or_to_leave_that(self, cluster):
        make("deploy", f"IMAGE={DIGEST}", "REPLICAS=2")
        assert self.initial(cluster) == "2"
        make("deploy", "IMAGE=registry.example/other:1", "CARRY=")
        assert self.initial(cluster) == "1"

    def test_a_pin_is_told_and_nothing_is_applied(self, cluster):
        cluster.patch("services", "ember", PINNED)
        calls = list(cluster.calls)
        done = make("deploy", f"IMAGE={DIGEST}")
        assert done.returncode == 2
        assert "traffic of ember is pinned to ember-00001" in done.stderr
        assert "make deploy UNPIN=1" in done.stderr
        assert cluster.calls == calls

    def test_told_to_it_unpins_when_the_new_revision_is_ready(self, cluster):
        cluster.patch("services", "ember", PINNED)
        done = make("deploy", f"IMAGE={DIGEST}", "UNPIN=1")
        assert done.returncode == 0, done.stderr
        assert traffic(cluster) == {"ember-00002": 100}
        assert cluster.service()["spec"]["traffic"] == [{"latestRevision": True, "percent": 100}]

    @pytest.mark.parametrize("words", [(), ("REPLICAS=2",)])
    def test_cut_off_before_it_has_unpinned_it_goes_on_when_it_is_run_again(
        self, cluster, tmp_path, words
    ):
        cluster.patch("services", "ember", PINNED)
        cut = tmp_path / "kubectl"
        cut.write_text(f'#!/bin/sh\ntest "$1" != patch || exit 1\nexec {kubectl()} "$@"\n')
        cut.chmod(0o755)
        words = (f"IMAGE={DIGEST}", "UNPIN=1", *words)
        assert make("deploy", *words, f"KUBECTL={cut}").returncode == 2
        assert traffic(cluster) == {"ember-00001": 100}
        assert make("deploy", f"IMAGE={DIGEST}").returncode == 2, "only when it is told to"
        done = make("deploy", *words)
        assert done.returncode == 0, done.stderr
        assert traffic(cluster) == {"ember-00002": 100}
        assert len(cluster.revisions) == 2
        assert "ember.dev/unpin" not in cluster.service()["metadata"]["annotations"]

    def test_what_has_no_traffic_gets_none_without_being_proven(self, cluster):
        cluster.patch("services", "ember", PINNED)
        make("deploy", f"IMAGE={DIGEST}", "CARRY=")
        assert traffic(cluster) == {"ember-00001": 100}
        done = make("deploy", f"IMAGE={DIGEST}", "UNPIN=1")
        assert done.returncode == 2
        assert f"ember rollout --image {DIGEST}" in done.stderr
        assert traffic(cluster) == {"ember-00001": 100}

    def test_a_rollout_that_is_under_way_comes_first(self, cluster):
        mark = '{"image": "x:2", "old": "ember-00001", "tag": "next"}'
        annotations = {"ember.dev/rollout": mark}
        cluster.patch("services", "ember", {"metadata": {"annotations": annotations}})
        done = make("deploy", f"IMAGE={DIGEST}")
        assert done.returncode == 2
        assert "A rollout of x:2 is under way" in done.stderr

    def test_diff_shows_them(self, cluster, needs):
        needs("diff")
        cluster.patch("revisions", "ember-00001", annotated(min_scale="2"))
        done = make("diff", f"IMAGE={DIGEST}")
        assert done.returncode == 0, done.stderr
        assert re.search(r"\+ +autoscaling.knative.dev/initial-scale: \"2\"", done.stdout)

    def test_an_api_server_that_is_not_there_is_one_line(self, tmp_path):
        nowhere = tmp_path / "nowhere"
        config = yaml.safe_load((tmp_path / "config").read_text())
        config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
        nowhere.write_text(yaml.safe_dump(config))
        done = make("deploy", KUBECONFIG=str(nowhere))
        assert done.returncode == 2
        first = done.stderr.splitlines()[0]
        assert first.startswith("Error: ")
        assert "127.0.0.1:9" in first
