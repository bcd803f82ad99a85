"""`ember doctor --cluster`, with the real kubectl, against an API server that only tells."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
import yaml

from tests.keepalive.doctor.test_advice import traffic
from tests.keepalive.doctor.test_doctor import ember, service
from tests.keepalive.doctor.test_revisions import revision
from tests.knative.manifests import kubectl

SERVING = "/apis/serving.knative.dev/v1"
CONFIG = "/api/v1/namespaces/knative-serving/configmaps"
VERSION = {"groupVersion": "serving.knative.dev/v1", "version": "v1"}
RESOURCES = {
    "/api/v1": {"configmaps": "ConfigMap"},
    SERVING: {"services": "Service", "revisions": "Revision"},
}
PINNED = service(traffic({"revisionName": "swap-00001", "percent": 100}))


def written(name, of="swap"):
    made = revision({"ember.dev/floor-reason": "rush"}, ["ember.dev/floor-reason"])
    made["metadata"] |= {"name": name, "labels": {"serving.knative.dev/service": of}}
    return made


def told(paths):
    """What the API server says at each path."""
    found = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {
            "kind": "APIGroupList",
            "groups": [
                {"name": "serving.knative.dev", "versions": [VERSION], "preferredVersion": VERSION}
            ],
        },
        **paths,
    }
    for path, kinds in RESOURCES.items():
        version = path.removeprefix("/apis/").removeprefix("/api/")
        resources = [
            {"name": name, "kind": kind, "namespaced": True, "verbs": ["get", "list"]}
            | {"singularName": kind.lower()}
            for name, kind in kinds.items()
        ]
        found[path] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    for name in ("config-features", "config-autoscaler", "config-defaults"):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}
        found.setdefault(f"{CONFIG}/{name}", made)
    return found


@contextmanager
def cluster(folder, monkeypatch, paths):
    answers = told(paths)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found = answers.get(urlsplit(self.path).path)
            failed = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
            body = json.dumps(found or failed).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "here", "users": []}
        config["clusters"] = [
            {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ]
        config["contexts"] = [{"name": "here", "context": {"cluster": "here", "namespace": "mine"}}]
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        monkeypatch.setenv("HOME", str(folder))
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def listed(namespace, services=(), revisions=()):
    return {
        f"{SERVING}/namespaces/{namespace}/{name}": {
            "kind": f"{kind}List",
            "apiVersion": "serving.knative.dev/v1",
            "metadata": {"resourceVersion": "1"},
            "items": list(items),
        }
        for name, kind, items in (
            ("services", "Service", services),
            ("revisions", "Revision", revisions),
        )
    }


def examined(*services):
    text = yaml.safe_dump_all(services)
    return ember("doctor", "-", "--cluster", "--kubectl", kubectl(), text=text)


def test_a_pin_and_a_foreign_annotation_in_the_cluster_are_told(tmp_path, monkeypatch):
    with cluster(tmp_path, monkeypatch, listed("mine", [PINNED], [written("swap-00001")])):
        done = examined(service())
    assert done.returncode == 65, done.stderr
    assert "Service swap: well" in done.stdout
    assert (
        "Service swap in the cluster: well\n  - warning: The traffic of swap is pinned"
        in done.stdout
    )
    assert "Revision swap-00001: wrong" in done.stdout
    assert "ember.dev/floor-reason, by kubectl-annotate" in done.stdout


def test_services_and_revisions_that_nobody_asked_about_are_left_out(tmp_path, monkeypatch):
    other = {**PINNED, "metadata": {"name": "other"}}
    there = listed("mine", [other], [written("other-00001", "other")])
    with cluster(tmp_path, monkeypatch, there):
        done = examined(service())
    assert (done.returncode, done.stdout) == (0, "Service swap: well\n"), done.stderr


def test_each_service_is_looked_for_in_its_own_namespace(tmp_path, monkeypatch):
    one = service(lambda made: made["metadata"].update(namespace="photos"))
    there = listed("photos", [PINNED]) | listed("mine", [])
    with cluster(tmp_path, monkeypatch, there):
        done = examined(one)
    assert "Service swap in the cluster: well\n  - warning" in done.stdout, done.stderr


@pytest.mark.parametrize("there", [{}, {CONFIG + "/config-defaults": None}])
def test_a_cluster_without_knative_is_an_error(tmp_path, monkeypatch, there):
    with cluster(tmp_path, monkeypatch, there):
        done = examined(service())
    assert (done.returncode, done.stdout) == (69, "")
